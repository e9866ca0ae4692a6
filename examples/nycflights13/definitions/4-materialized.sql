-- A materialized definition: its three queries say how a range of time is extracted, how its source is
-- counted, and how partitions are put together. Until partitions are kept it reads as an empty relation.

CREATE OR REPLACE MATERIALIZED VIEW flights_by_day WITH (
  extract_query = $$
    SELECT time_bucket(INTERVAL '1 day', scheduled_hour) AS day, carrier, origin,
           count(*) AS departures, coalesce(sum(delay), 0)::BIGINT AS minutes_late
    FROM departures
    WHERE scheduled_hour >= {begin} AND scheduled_hour < {end}
    GROUP BY ALL $$,
  count_src_query = $$
    SELECT count(*) AS count FROM departures WHERE scheduled_hour >= {begin} AND scheduled_hour < {end} $$,
  merge_partitions_query = $$
    SELECT day, carrier, origin, sum(departures)::BIGINT AS departures, sum(minutes_late)::BIGINT AS minutes_late
    FROM {source}
    GROUP BY ALL $$,
  time_column            = 'day',
  source_partition_delta = '1 day',
  merge_partition_delta  = '30 days',
  merge_sort_order       = 'day, carrier, origin'
);
