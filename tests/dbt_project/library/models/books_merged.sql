{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key=['book_id', 'title'],
    merge_update_columns=['price'],
    incremental_predicates=['DBT_INTERNAL_DEST.book_id < 100'],
    on_schema_change='append_new_columns',
) }}
select book_id, title, price, changed_at
{% if var('with_shelf') %}, concat('shelf ', book_id % 2) as shelf {% endif %}
from {{ ref('books') }}
