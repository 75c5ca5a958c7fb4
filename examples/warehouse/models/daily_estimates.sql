-- Intervals belong to each row: show low and high beside an estimate, and do not average them.
select
    metric,
    value,
    epoch_start,
    epoch_end,
    estimate,
    low,
    high,
    (high - low) / 2 as half_width,
    share,
    detected,
    reports,
    local_epsilon,
    central_epsilon,
    definition
from {{ source('hubbub', 'estimates') }}
