select loan_id from {{ ref('loans_merged') }} group by loan_id having count(*) > 1
