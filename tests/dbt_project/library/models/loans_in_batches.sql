{{ config(
    materialized='incremental',
    incremental_strategy='microbatch',
    event_time='day',
    begin='2024-05-01',
    batch_size='day',
    partition_by=['day'],
) }}
select loan_id, pages, day from {{ ref('stg_loans') }}
