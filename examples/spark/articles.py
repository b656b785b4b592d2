"""The sentences of the search example's articles through Armature, on local Spark, and what came of it.

    python articles.py GATEWAY [--mode embeddings|batches] [--model NAME] [--rows N] [--partitions N] [--in-flight N]
"""

import argparse
import json
import os
import re
import sys
import time
from collections import namedtuple

from pyspark.sql import SparkSession

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from armature_spark import Armature  # noqa: E402

Row = namedtuple("Row", ["id", "text"])


def sentences(count):
    """Real sentences, again from the first where more are wanted than there are; each with an id of its own."""
    with open(os.path.join(HERE, "../search/articles/articles.jsonl"), encoding="utf8") as file:
        articles = [json.loads(line) for line in file if line.strip()]
    found = [
        (article["id"], sentence.strip())
        for article in articles
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", article["text"])
        if len(sentence.split()) >= 4
    ]
    return [Row(f"{i}-{found[i % len(found)][0]}", found[i % len(found)][1][:500]) for i in range(count or len(found))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gateway")
    parser.add_argument("--mode", choices=["embeddings", "batches"], default="embeddings")
    parser.add_argument("--model")
    parser.add_argument("--key", default=os.environ.get("ARMATURE_KEY"))
    parser.add_argument("--rows", type=int, default=0, help="0: every sentence once")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--in-flight", type=int, default=4, help="requests of one partition at one time")
    parser.add_argument("--together", type=int, default=16, help="rows of one request")
    parser.add_argument("--job", default=f"articles-{int(time.time())}")
    parser.add_argument("--json", action="store_true", help="prints the figures alone")
    options = parser.parse_args()
    model = options.model or {"embeddings": "embeddings", "batches": "chat"}[options.mode]

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("armature")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(options.partitions))
        .getOrCreate()
    )
    context = spark.sparkContext
    context.addPyFile(os.path.join(HERE, "armature_spark.py"))  # a cluster's executors need it too
    counters = {"asked": context.accumulator(0), "waited": context.accumulator(0)}
    client = Armature(options.gateway, options.key, counters=counters)

    def chat_of(row):
        return {
            "model": model,
            "max_tokens": 24,
            "messages": [{"role": "user", "content": f"In five words, what is this about? {row.text}"}],
        }

    through = (
        client.embeddings(model, options.together, options.in_flight)
        if options.mode == "embeddings"
        else client.batches(chat_of, job=options.job)
    )
    rows = spark.createDataFrame(sentences(options.rows), "id string, text string").repartition(options.partitions)
    begun = time.monotonic()
    # Kept, so that the actions below do not ask again.
    answers = spark.createDataFrame(rows.rdd.mapPartitions(through), "id string, value string, error string").persist()
    joined = rows.join(answers, "id")
    told = answers.selectExpr("count(*)", "count(distinct id)", "count_if(value is null)").first()
    figures = {
        "rows": options.rows or len(sentences(0)),
        "answers": told[0],
        "ids": told[1],
        "joined": joined.count(),
        "failed": told[2],
        "requests": counters["asked"].value,
        "waits": counters["waited"].value,
        "seconds": round(time.monotonic() - begun, 2),
    }
    if options.json:
        print(json.dumps(figures))
    else:
        joined.show(5, truncate=60)
        print(", ".join(f"{name} {value}" for name, value in figures.items()))
    spark.stop()
    return 0 if figures["rows"] == figures["answers"] == figures["ids"] == figures["joined"] else 1


if __name__ == "__main__":
    sys.exit(main())
