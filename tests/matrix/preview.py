"""What `enable` says of the Spark in this environment, as JSON: the matrix runs it with a preview that isn't supported.

`accepted` is whether the start-up check lets it pass. An error of another class than `TablelogError` ends the program.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.sessions import session_builder
from tablelog.errors import TablelogError
from tablelog.spark import enable

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = session_builder("local[1]", {}).getOrCreate()
answer: dict[str, object] = {"spark": spark.version}
try:
    enable(spark)
except TablelogError as error:
    answer |= {"accepted": False, "says": f"{type(error).__name__}: {error}"}
else:
    answer |= {"accepted": True, "says": ""}
print(json.dumps(answer))
spark.stop()
