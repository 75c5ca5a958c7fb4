with ranked as (
    select
        *,
        rank() over (partition by metric order by epoch_start desc) as age
    from {{ ref('daily_estimates') }}
)

select metric, value, epoch_start, estimate, low, high, share, detected
from ranked
where age = 1
order by metric, detected desc, estimate desc
