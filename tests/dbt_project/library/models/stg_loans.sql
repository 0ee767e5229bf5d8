{{ config(materialized='view') }}
select loan_id, book_id, member, cast(day as date) as day, pages from {{ ref('loans') }}
