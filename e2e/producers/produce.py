"""Produces one DDL record with the Python client: produce.py BROKERS TOPIC KEY [NAME=VALUE ...] < value

An empty standard input is a tombstone: a null value, which drops the view that KEY names.
"""

import sys

from kafka import KafkaProducer

brokers, topic, key, *headers = sys.argv[1:]
value = sys.stdin.buffer.read()
producer = KafkaProducer(bootstrap_servers=brokers.split(","), acks="all")
pairs = [(name, text.encode()) for name, text in (h.split("=", 1) for h in headers)]
record = producer.send(topic, key=key.encode(), value=value or None, headers=pairs).get(timeout=30)
producer.close()
print(record.offset)
