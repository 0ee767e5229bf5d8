{{ config(materialized='incremental', incremental_strategy='insert_overwrite') }}
select loan_id, member from {{ ref('stg_loans') }}
{% if is_incremental() %}
where loan_id > 4
{% endif %}
