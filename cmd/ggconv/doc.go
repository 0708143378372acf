// Ggconv converts a Hugging Face checkpoint to a GGUF file.
//
//	ggconv [flags] DIR [OUT]
//	ggconv --dry-run --config-only DIR...
//
// DIR is a directory with config.json, tokenizer files and weights in safetensors or
// PyTorch files (pytorch_model*.bin, .pt); no code in them is run. Of an image or video
// model, it is the file with the weights (.safetensors, .ckpt, .pt, .pth, .bin), or a folder
// of the diffusers library. OUT is the file to
// write. Without OUT and --output the file goes into DIR, named by the model's name and
// type. The bytes are those of llama.cpp's converter, called the reference below
// (docs/deviations.md lists the exceptions). Flags may be anywhere.
//
// # Output
//
//	--output, -o FILE          write to FILE, or into it if it is a directory; {ftype} is the type
//	--outtype TYPE             store weights as auto, f32, f16, bf16, q8_0, tq1_0 or tq2_0
//	--vocab-only               write the metadata and the vocabulary, no tensors
//	--bigendian                write for big-endian machines
//	--max-tensors N            begin a new file after N tensors
//	--max-size SIZE            begin a new file when tensors exceed SIZE bytes (500M, 1.5G, 2MiB)
//	--no-tensor-first-split    put no tensors into the first file of several
//	--force                    replace the output if it exists
//	--work-dir FOLDER          make files to be uploaded in FOLDER (default: the temporary folder)
//	--compat reference         write the bytes of the reference even where they are broken
//
// FILE may be an object, s3://BUCKET/KEY: the file is made in a local folder and uploaded when it is whole. The same
// command resumes an interrupted upload. With --part and --finish parts send pieces of the object instead, and no folder
// is used unless --work-dir or --part-files is given (docs/clusters.md).
//
// An OUT whose name ends in -f16, -bf16, -f32 or -q8_0, with or without .gguf, sets
// the type unless --outtype does; --output never does. A name that ends in a type of
// ggquant alone, such as Q4_K_M, is refused.
//
// # Checkpoint
//
//	--arch CLASS               take the model as one of CLASS, whatever config.json says
//	--model-name NAME          call the model NAME
//	--metadata FILE            take general.* keys from FILE, a JSON object; they override all others
//	--pre NAME                 call the pre-tokenizer of byte-level BPE NAME
//	--embed-hf-tokenizer       write the text of tokenizer.json into the file, too
//	--fuse-qkv                 fuse the query, key and value tensors into one
//	--fuse-gate-up-exps        fuse the gate and up projections of experts into one tensor
//	--fp8-as-q8                write the matrices that are stored in FP8 as Q8_0
//	--mistral-format           read params.json, consolidated*.safetensors and tekken.json
//	--sentence-transformers-dense-modules
//	                           include the dense modules that follow an embedding model
//	--mtp                      write only the MTP (NextN) layers, a draft model
//	--no-nextn, --no-mtp       leave out the MTP (NextN) layers
//	--dspark                   write only the DSpark draft model in a DeepSeek V4 checkpoint
//	--mmproj                   convert the vision or audio encoder instead of the language model
//	--merge-lora ADAPTER[:SCALE]
//	                           add the LoRA adapter in a directory to the weights; repeatable
//	--target-model-dir FOLDER  the target model of a draft model, which gets its tokenizer
//	--outside-links            follow links that lead out of DIR
//	--remote                   DIR is ORG/NAME in the Hugging Face hub, the same as hf://ORG/NAME
//	                           DIR may also be s3://BUCKET/FOLDER
//	--cache FOLDER             keep downloaded weights of a remote checkpoint for later runs
//
// # Adapter
//
// ADAPTER-DIR is a LoRA adapter as the PEFT library saves it; its weights become F32
// unless --outtype is f16, bf16, q8_0 or auto. Of the base model only config.json is read.
//
//	--base DIR                 the base model is in DIR
//	--base-model-id ID         it is ORG/NAME, in the cache of the Hugging Face hub or on it
//
// # Older files
//
// MODEL.bin is a Llama model in one of llama.cpp's formats before GGUF: GGML, GGMF, or
// GGJT 1 to 3. Its weights stay as they are; types whose layout has changed since are
// refused. OUT is MODEL.gguf next to it by default.
//
//	--eps X                    the epsilon of its norms is X (5e-06)
//	--gqa N                    N query heads share a key head (default: by the shapes of tensors)
//	--ctx-size, -c N           it has N positions (2048)
//	--desc TEXT                describe it as TEXT
//
// # Run
//
//	--dry-run                  print the plan and the names of the files; write nothing
//	--config-only              with --dry-run: check whether config.json and tokenizer of each DIR are supported
//	--verbose                  print the plan
//	--print-supported-models   list the classes that are converted and their architectures
//	--json                     print the plan or the result as JSON (docs/json.md)
//	--resume                   resume an interrupted run of the same command; keep what is done if this
//	                           one fails
//	--part K/N                 write only part K of N; auto, auto/N: K from a scheduler, as
//	                           docs/clusters.md lists them
//	--part-files DIR           keep parts in files of their own in DIR
//	--finish                   put the parts together
//	--verify                   read the output back from the disk and compare
//	--manifest FILE            write sizes and sums of inputs, tensors and files to FILE, for ggtool reproduce
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//	--quiet, -q                print only errors, warnings and requested results
//	--help, --version
//
// "ggconv completion SHELL" prints completions for bash, zsh, fish or powershell, "ggconv man" the
// manual page.
//
// # Exit codes
//
//	0    done
//	1    input or output failed: disk full, read or write error
//	2    usage: bad flag or argument, not a directory, output exists, output equals input
//	3    broken input: no or bad config.json, missing shard, truncated, NaN or infinity in weights
//	4    not supported: architecture, tokenizer, precision or type
//	5    refused by a rule: a link that leads out of DIR, a PyTorch file that refers to code
//	7    parts of a run are missing (--finish)
//	130  interrupted
//
// After any error there is no output file.
//
// # Examples
//
// Convert to the type of the checkpoint, under the reference's name:
//
//	ggconv models/Gollama
//
// Convert to float16, and see the plan first:
//
//	ggconv --dry-run models/Gollama gollama-f16.gguf
//	ggconv models/Gollama gollama-f16.gguf
//
// Shards of at most two gigabytes, named gollama-00001-of-00003.gguf and so on:
//
//	ggconv --outtype bf16 --max-size 2G models/Gollama gollama.gguf
package main
