{{ config(materialized='table', partition_by='member', location_root=var('external')) }}
with pages as (select member, sum(pages) as pages from {{ ref('stg_loans') }} group by member)
select pages, member from pages
