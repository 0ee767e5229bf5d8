{{ config(
    materialized='table',
    persist_docs={'relation': true, 'columns': true},
    tblproperties={'delta.enableChangeDataFeed': 'true', 'owner_team': 'books'},
    post_hook=['optimize {{ this }}', 'vacuum {{ this }} dry run'],
) }}
select cast(book_id as bigint) as book_id, title, cast(price as double) as price from {{ ref('books') }}
