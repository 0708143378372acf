// Runs models over the first tokens of a text with node-llama-cpp: a line of JSON for each, with the tokens and the perplexity as
// llama-perplexity has it for one chunk, of the second half of the tokens.
//   node run.mjs TEXT TOKENS FILE...
import fs from "node:fs";
import {getLlama} from "node-llama-cpp";

const [text, count, ...files] = process.argv.slice(2);
const llama = await getLlama({gpu: false, build: "never", progressLogs: false, logLevel: "error"});
for (const path of files) {
    const model = await llama.loadModel({modelPath: path});
    const context = await model.createContext({contextSize: 256});
    const tokens = [model.tokens.bos, ...model.tokenize(fs.readFileSync(text, "utf8"))].slice(0, Number(count));
    const input = tokens.map((t) => [t, {generateNext: {probabilities: true}}]);
    const output = await context.getSequence().controlledEvaluate(input);
    let sum = 0, n = 0;
    for (let i = tokens.length / 2; i < tokens.length - 1; i++, n++)
        sum -= Math.log(output[i].next.probabilities.get(tokens[i + 1]));
    console.log(JSON.stringify({release: llama.llamaCppRelease.release, tokens, ppl: Math.exp(sum / n)}));
    await model.dispose();
}
await llama.dispose();
