"""Functions of Spark that give the same result for the same row, and run no other code: what conditions may call."""

from typing import Final

DETERMINISTIC: Final = frozenset(
    """
    abs acos add_months array array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat array_size
    array_sort array_union arrays_overlap ascii asin atan atan2 base64 bigint binary bin bit_count bit_get bit_length
    boolean bround btrim cardinality cbrt ceil ceiling char char_length character_length chr coalesce concat concat_ws
    contains conv cos cosh cot crc32 date date_add date_diff date_format date_from_unix_date date_part date_sub
    date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees div double e
    element_at elt encode endswith equal_null exp expm1 factorial find_in_set flatten float floor format_number
    format_string from_unixtime from_utc_timestamp get get_json_object getbit greatest hash hex hour hypot if ifnull
    ilike initcap instr int isnan isnotnull isnull json_array_length json_object_keys last_day lcase least left len
    length levenshtein like ln locate log log10 log1p log2 lower lpad ltrim make_date make_timestamp make_timestamp_ltz
    make_timestamp_ntz map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys map_values
    mask md5 minute mod month monthname months_between named_struct nanvl negative next_day nullif nullifzero nvl nvl2
    octet_length overlay parse_url pi pmod position positive pow power printf quarter radians regexp regexp_count
    regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right
    rint rlike round rpad rtrim second sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign signum sin
    sinh size slice smallint sort_array soundex space split split_part sqrt startswith str_to_map string struct substr
    substring substring_index tan tanh timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint to_binary
    to_char to_date to_number to_timestamp to_timestamp_ltz to_timestamp_ntz to_utc_timestamp translate trim trunc
    try_add try_cast try_divide try_element_at try_mod try_multiply try_subtract try_to_binary try_to_date try_to_number
    try_to_timestamp ucase unbase64 unhex unix_date unix_micros unix_millis unix_seconds upper url_decode url_encode
    weekday weekofyear width_bucket xxhash64 year zeroifnull
    """.split()
)
"""Left out: functions that aggregate, generate rows, differ between calls or queries, or read files."""

OPERATORS: Final = frozenset("and or not == = <=> != < <= > >= + - * / % & | ^ ~ in isNull isNotNull when".split())
"""What PySpark calls functions in the plan of a Column, beside functions of SQL."""
