// Prints what @huggingface/gguf, or with "llama" node-llama-cpp, reads in the headers of GGUF files: a line of JSON for each.
//   node headers.mjs hub|llama FILE...
import {gguf, ggufAllShards} from "@huggingface/gguf";
import {readGgufFileInfo} from "node-llama-cpp";

const plain = (_, v) => typeof v === "bigint" ? Number(v) : v;

// flat gives keys their full names again, which one of the readers takes apart.
function flat(object, prefix, into) {
    for (const [key, value] of Object.entries(object)) {
        if (value !== null && typeof value === "object" && !Array.isArray(value))
            flat(value, prefix + key + ".", into);
        else
            into[prefix + key] = value;
    }
    return into;
}

const readers = {
    async hub(path) {
        const file = await gguf(path, {allowLocalFile: true});
        const {version, tensor_count, kv_count, ...metadata} = file.metadata;
        return {version, metadata, tensors: file.tensorInfos.map((t) => ({name: t.name, ne: t.shape, type: t.dtype, offset: t.offset}))};
    },
    async shards(path) {
        const all = await ggufAllShards(path, {allowLocalFile: true});
        return {shards: all.shards.length, parameters: all.parameterCount};
    },
    async llama(path) {
        const file = await readGgufFileInfo(path, {spliceSplitFiles: false, logWarnings: false});
        return {
            version: file.version, metadata: flat(file.metadata, "", {}),
            tensors: file.tensorInfo.map((t) => ({name: t.name, ne: t.dimensions, type: t.ggmlType, offset: t.offset}))
        };
    }
};
const [reader, ...files] = process.argv.slice(2);
for (const path of files)
    console.log(JSON.stringify(await readers[reader](path), plain));
