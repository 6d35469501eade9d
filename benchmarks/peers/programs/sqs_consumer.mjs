// Node's sqs-consumer: four instances with one client; the argument names the kind of handler.

import { createRequire } from "node:module";
import { join } from "node:path";

// The packages are in build/, which is not above this file.
const require = createRequire(join(process.env.BENCHMARK_NODE, "package.json"));
const { Consumer } = require("sqs-consumer");
const { SQSClient, GetQueueUrlCommand } = require("@aws-sdk/client-sqs");

const INSTANCES = 4;
const handler = process.argv[2];

const sqs = new SQSClient({
  region: process.env.AWS_REGION,
  endpoint: process.env.AWS_ENDPOINT_URL,
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});
const found = await sqs.send(new GetQueueUrlCommand({ QueueName: process.env.BENCHMARK_QUEUE }));

for (let n = 0; n < INSTANCES; n++) {
  const consumer = Consumer.create({
    queueUrl: found.QueueUrl,
    sqs,
    batchSize: 10,
    waitTimeSeconds: 10,
    // What is returned is deleted.
    [handler]: async (messages) => messages,
  });
  for (const trouble of ["error", "processing_error"]) {
    consumer.on(trouble, (error) => {
      throw error;
    });
  }
  consumer.start();
}
