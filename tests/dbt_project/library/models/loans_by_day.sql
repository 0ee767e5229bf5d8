{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']) }}
select member, sum(pages) as pages, day from {{ ref('stg_loans') }}
{% if is_incremental() %}
where day >= date'2024-05-03'
{% endif %}
group by member, day
