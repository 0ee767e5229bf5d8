{{ config(materialized='incremental', incremental_strategy='merge', unique_key='loan_id') }}
select * from {{ ref('stg_loans') }}
