{{ config(materialized='incremental', incremental_strategy='append') }}
select * from {{ ref('stg_loans') }}
{% if is_incremental() %}
where loan_id > (select max(loan_id) from {{ this }})
{% endif %}
