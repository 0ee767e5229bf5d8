"""A dbt project on Delta tables, run by dbt's session method; `make test-dbt` runs it in an environment of its own."""
