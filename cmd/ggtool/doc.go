// Ggtool inspects, edits, splits, merges and exports GGUF files, and publishes models.
//
//	ggtool inspect [flags] FILE
//	ggtool verify [flags] FILE...
//	ggtool verify --public-key|--certificates FILE DIR
//	ggtool diff [--alone] A B
//	ggtool quality [flags] BASE [MODEL...] [--type TYPE...]
//	ggtool hash [flags] FILE
//	ggtool imatrix show [--json] FILE
//	ggtool imatrix check --model FILE MATRIX
//	ggtool imatrix merge FILE... OUT
//	ggtool imatrix convert|strip|fill|remap [flags] FILE OUT
//	ggtool meta [flags] FILE
//	ggtool name [flags] NAME...
//	ggtool render [flags] MODEL [SOURCE]
//	ggtool split [flags] FILE PREFIX
//	ggtool merge [flags] FIRST OUT
//	ggtool endian [--to big|little] FILE OUT
//	ggtool pad-vocab [flags] FILE OUT
//	ggtool export [flags] FILE DIR
//	ggtool clean [flags] [DIR...]
//	ggtool card [flags] DIR
//	ggtool modelfile [flags] FILE [ENCODER] [ADAPTER]
//	ggtool release [flags] PLAN.yaml
//	ggtool reproduce [flags] MANIFEST
//	ggtool submit slurm|k8s|kueue|argo|aws-batch|hf-jobs|skypilot [flags] -- COMMAND ARGUMENT...
//
// "ggtool completion SHELL" prints completions for bash, zsh, fish or powershell, "ggtool man" the
// manual page.
//
// With --quiet, or -q, each verb prints only errors, warnings and results, and no report of files
// written.
//
// FILE, A and B are GGUF files, or the first shard of a model, whose shards are read as
// one model. --alone reads a shard by itself.
//
// # Inspect
//
// Lists the header, the metadata and the tensors: type, dimensions, offset, size and
// bits per weight. Unknown types are listed by number.
//
// FILE may be on a server, hf://ORG/NAME/FILE.gguf, hf://ORG/NAME@REVISION/FILE.gguf or
// https://HOST/PATH, or an object, s3://BUCKET/KEY: little more than the header is fetched. HF_TOKEN and
// HF_ENDPOINT apply, and for objects the variables of other S3 tools.
//
//	--json                     print one JSON object
//	--markdown                 print Markdown tables
//	--full                     print long arrays and strings in full
//	--get KEY                  print only the value of KEY, in full: arrays element by element
//	--tensors EXPRESSION       list only tensors whose names match
//	--alone                    take a shard by itself (also for diff and hash)
//	--html FILE                write a page, too: recipe, layers by type, sizes, memory, tokenizer, metadata
//	--results FILE             with --html: also divergence and perplexity, from the output of ggeval compare --json
//	                           or a release's quality.json
//	--force                    replace the page if it exists
//
// With --memory it lists the memory that llama.cpp needs to run the model without accelerators:
// weights, caches and states to the byte, compute buffers as an estimate.
//
//	--ctx-size, -c 4k,32k      context lengths (default: several, up to the trained one)
//	--cache-type TYPE          type of the cache; KEYS,VALUES of both (f16)
//	--parallel N               N sequences at the same time, as llama-server -np N (1)
//	--ubatch-size N            compute N tokens at once (512)
//
// # Verify
//
// Lists all defects of models: structure, shards, numbers that are not finite, vocabulary,
// keys and tensors of the architecture, chat templates that reach for Python's internals. The exit
// code is 3 if there are any; notes are about deviations that loaders may accept.
//
//	--header-only              do not read the tensors
//	--templates MODEL          compare what the chat templates make of a fixed set of conversations with what
//	                           those of MODEL make: the checkpoint directory, GGUF file or hf://ORG/NAME of the source
//	--sums FILE                compare SHA-256 sums with a list as sha256sum writes it
//	                           (a file may be listed several times, but not with different sums)
//	--manifest FILE            compare sizes and sums with the manifest of a release or a run
//	--public-key FILE          verify the signature of a folder, DIR/model.sig, and that of its provenance, made with
//	                           the private key that belongs to this one
//	--certificates FILE        or verify a signature whose certificate leads to one of these root certificates
//	--signature FILE           the signature, of the folder that it is in, or of FILEs in it
//	--json                     print one JSON object
//	--threads N                use N workers (0: one per CPU)
//
// # Diff
//
// Lists the differences between two models, one line each; the exit code is 6 if there are
// any. For tensors whose types or data differ it prints the element-wise difference after
// decoding: the largest and the root mean square.
//
// # Quality
//
// Measures the weight error of each MODEL against BASE, from which it was quantized, by tensor, by type and
// all together: RMSE, relative RMSE, RMSE weighted by importance, the largest error with its
// column and row, signal-to-noise ratio, cosine, bits per weight.
//
// BASE and MODEL are GGUF files, the first shard of a model, or checkpoint directories, which are
// read as if converted, as for "ggeval compare"; all of them may be on a server. With --type, the
// output that ggquant would make of BASE is measured as well, without writing it; the figures
// equal those of the written file.
//
//	--type TYPE                a recipe, by name or number; repeatable
//	--imatrix FILE             weight errors by an importance matrix, too; recipes use it
//	--via TYPE                 take checkpoints as if converted to auto, f32, f16 or bf16 first
//
// and for recipes these, as for ggquant: --pure, --leave-output-tensor, --output-tensor-type,
// --token-embedding-type, --tensor-type, --tensor-type-file, --allow-requantize, --include-weights,
// --exclude-weights; for checkpoints, as for ggconv: --arch, --model-name, --metadata, --pre,
// --embed-hf-tokenizer, --fuse-qkv, --fuse-gate-up-exps, --fp8-as-q8, --mistral-format,
// --outside-links, --merge-lora, --sentence-transformers-dense-modules, --mtp, --no-nextn, --dspark,
// --target-model-dir, --mmproj, --remote, --cache.
//
//	--json                     print one JSON object
//	--html FILE                write the figures with plots as a page, too
//	--force                    replace the page if it exists
//	--threads N                use N workers (0: one per CPU)
//
// # Hash
//
// Lists hashes of the tensors, each alone and all together, as llama.cpp's gguf-hash does:
// KIND HASH FILE:TENSOR. Metadata are not hashed, and shards have the hashes of the merged
// file. The exit code of --check is 6 if a hash differs.
//
//	--xxh64 --sha1 --sha256    kinds (xxh64 if none is named)
//	--uuid                     UUID version 5, of all tensors together
//	--all                      all kinds
//	--no-layer                 only the hash of all tensors together
//	--check FILE               compare with the list in FILE
//	--json                     print one JSON object
//
// # Imatrix
//
// Shows, checks and changes importance matrices of either format.
//
//	show       figures of each tensor and layer: the statistics of llama-imatrix, experts
//	           that no token has chosen, columns that are 0, and the share of the
//	           largest columns in the sum
//	check      whether a matrix fits a model
//	merge      adds matrices, in any mix of formats, as llama-imatrix does
//	convert    writes another format
//	strip      removes folders from the names of texts
//	fill       fills in values for experts that no token has chosen
//	remap      makes a matrix for a model with fused tensors from one with split tensors, or back
//
//	--model FILE               the GGUF file whose tensors the matrix is for
//	--how uniform|mean         fill with the same for all columns, or with the mean of the other experts
//	--format gguf|dat          format to write
//	--ctx-size, -c N           chunks of legacy files have N tokens (512)
//	--json                     print one JSON object
//	--force                    replace OUT if it exists
//
// # Meta
//
// Changes a file's metadata, in place if the header has room, else by rewriting the file. A
// crash loses nothing; the next "ggtool meta FILE" completes an interrupted change. Changes
// are made in the order of this list.
//
//	--copy-from FILE           take keys from another GGUF file
//	--copy PREFIX              copy only keys that begin with PREFIX
//	--rename KEY=NEW           rename a key
//	--remove KEY               remove a key
//	--template FILE            set the chat template: text, or tokenizer_config.json
//	--special-token NAME=TEXT  set a special token, such as eos=</s>, or by its number: eos=#2
//	--set KEY=VALUE            set a key, keeping its type; KEY=TYPE:VALUE sets the type, KEY=TYPE:[...] an array
//	--reserve SIZE             leave room for later changes (500M, 1.5G, 2MiB)
//	-o, --output OUT           write OUT, and do not change FILE
//	--alone                    change a shard by itself; else FILE is the first shard
//	--dry-run                  only print what would change
//	--force                    replace OUT if it exists
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Name
//
// Reads and checks names of files by the GGUF naming convention: base name, size label,
// fine-tune, version, encoding, type and shard. Publishers' own names are read, too, with a list of the deviations from
// the convention; the exit code is 3 for a name that is not one of a GGUF file.
//
//	--strict                   exit code 3 for any deviation from the convention
//	--build                    print the names of GGUF files according to their metadata
//	--encoding NAME            with --build: use NAME as the encoding instead of general.file_type
//	--json                     print one JSON object: names, each with file, parts, problems, or build
//
// # Render
//
// Prints the text that the chat template of a GGUF file, a checkpoint directory or hf://ORG/NAME makes of a
// conversation, as transformers does, with special tokens as texts. With SOURCE, another model, what the templates of
// both make of a fixed set of conversations is compared, without printing any.
//
//	--messages FILE            the conversation: a JSON list of messages, or an object with messages, tools, documents
//	                           and variables of the template; - reads standard input (default: a short example)
//	--chats                    each line of that file is a conversation: print all as the one text that ggeval and
//	                           ggquant take with --chats, without BOS at its beginning, which llama-imatrix adds, and
//	                           with a newline at its end, which it takes away (docs/judging.md)
//	--print-template           print the template itself
//	--tools FILE               give the template these tools: a JSON list of functions
//	--no-generation-prompt     leave out what precedes an answer of the model
//	--template NAME            use this template (default: tool_use with tools if there is one, else the default one)
//	--template-arguments JSON  set variables of the template to the members of an object
//	--date DATE                the day that templates print (2024-07-26)
//	--alone                    read a shard by itself
//	--json                     print one JSON object: template, templates, text, assistant
//
// # Clean
//
// Lists leftover files in directories, of runs that were killed or whose parts are not finished: temporary files and
// their journals, from which the same command would resume.
//
//	--remove                   remove them, except files in use and files that may belong to another program
//	--older-than TIME          only files not written to for that long (90m, 48h)
//	                           (DIR may be s3://BUCKET/FOLDER: unfinished uploads)
//	--json                     print one JSON object: leftovers
//
// # Split and merge
//
// Split cuts a model into shards, PREFIX-00001-of-00003.gguf and so on; a model in shards is
// split anew. Merge joins shards. Tensors of all types are copied as they are; files are
// those of llama-gguf-split. The input is kept.
//
//	--max-tensors N            put at most N tensors into a shard (128)
//	--max-size SIZE            put at most SIZE bytes of tensors into a shard
//	--no-tensor-first-split    put no tensors into the first shard
//	--dry-run                  only list the shards
//	--clean                    for merge: leave out the keys split.no, split.count and split.tensors.count
//	--force                    replace outputs that exist
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Endian
//
// Writes a file in the other byte order, with tensors of all types. For a model in shards, FILE is
// the first shard, and all are written: OUT.gguf becomes OUT-00001-of-00003.gguf and so on.
//
//	--alone                    read a shard by itself
//	--to ORDER                 big or little
//	--force                    replace OUT if it exists
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Pad-vocab
//
// Adds tokens [PADn] of type unused to the vocabulary, and rows for them to the token embeddings
// and the output matrix; existing rows of any type are copied as they are. New rows, and so the
// logits of new tokens, are 0, unless --like names a token whose rows are copied.
//
//	--size N                   pad to N tokens
//	--multiple N               round up to a multiple of N tokens, --size too
//	--like ID                  copy the rows of this token
//	--force                    replace OUT if it exists
//	--json                     print one JSON object
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Export
//
// Dequantizes the tensors and writes them as safetensors into DIR, which is created or must
// be empty. It writes no configuration and no tokenizer.
//
//	--type TYPE                auto is lossless; f32, f16 and bf16 apply to all floating-point tensors
//	--hf                       name and arrange tensors as in the Hugging Face checkpoint
//	--max-size SIZE            put at most SIZE bytes of data into a file
//	--force                    write into DIR even if it is not empty, and replace files
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Card
//
// Writes the model card of a folder with GGUF files, DIR/README.md: front matter by the rules of
// the Hugging Face hub, a table of the files with their types, sizes, bits per weight, memory and figures of
// ggeval (JSON files in DIR), a recommendation if divergences over enough tokens show one, commands, and how the
// files were made. Parts between marks are generated; text around them is kept. Names and texts from metadata are
// escaped.
//
//	--base-model ORG/NAME      the hub's model from which the files were quantized
//	--repository ORG/NAME      where the files are on the hub: commands name it
//	--ctx-size N               tokens of the context for which the card has the memory (8192)
//	--quantized-by NAME        who quantized them
//	--template FILE            use another template (Go's text/template): see package card
//	--dry-run                  print the card instead of writing it
//	--json                     print one JSON object: card (its path), written, files and sidecars with file,
//	                           shards, bytes, bits_per_weight, kl_divergence, ppl; warnings
//	--force                    replace a README.md that has no marks
//
// # Modelfile
//
// Prints the Modelfile with which Ollama takes in a model: its files, those of its encoder, an adapter, the settings for
// sampling and the license that the metadata have, and the tokens that end a turn as stop sequences. Texts that a
// Modelfile cannot have are left out with a warning. It has no template unless one is named: Ollama runs that of the file.
//
//	-o, --output FILE          write to FILE; paths in it are relative to its folder
//	--from NAME                the model is one of Ollama: for an adapter without its model
//	-c, --ctx-size N           tokens of the context
//	--system TEXT              the system message
//	--template FILE            a template in Ollama's language, instead of that of the model
//	--json                     print one JSON object (docs/json.md)
//	--force                    replace the output if it exists
//
// # Release
//
// Makes everything of a published model: quantized models from one read of the source, shards,
// importance matrix, vision or audio encoder, Modelfiles, pages about the models, measurements, card, sums and a
// manifest. Files that are up to date are not made again, and the run after a killed one resumes.
// docs/publishing.md describes the plan and the state. HF_ENDPOINT and HF_TOKEN apply to sources
// on the hub.
//
//	-o, --output DIR           write into DIR instead of the plan's directory
//	--dry-run                  list the files to make, with sizes, time and free disk space
//	--schema                   print the JSON schema of plans
//	--cache DIR                keep downloaded weights of a remote source
//	--json                     print one JSON object (docs/json.md)
//	--force                    replace files that were not made by a release
//	--keep                     keep files of earlier runs that are no longer in the plan, but not in the card and the sums
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//	--part K/N                 make only part K of N of the models and encoders, for --finish; auto, auto/N: K from a
//	                           scheduler, as docs/clusters.md lists them
//	--part-files DIR           keep the parts in folders in DIR
//	--finish                   take what all parts have made, and make the rest
//	--push TO                  push the folder when it is whole, as push does, with its flags
//	--private, --pull-request, --message
//	                           as for push
//
// Instead of a plan:
//
//	--source SOURCE            checkpoint directory, GGUF file, hf://ORG/NAME[@REVISION] or s3://BUCKET/KEY
//	--type TYPE[,KEY=VALUE...] write a model; keys are those of an output in a plan; repeatable
//	--layout flat|folders      how files are laid out
//	--max-size SIZE            the largest shard
//	--name-template NAME       name files NAME ({name}-{FTYPE}), with the fields of ggquant --name-template
//	--via TYPE                 take a checkpoint as if converted to TYPE first
//	--model-name NAME          the name of the model
//	--calibrate FILE           make the importance matrix from the text in FILE
//	--imatrix FILE             or use this importance matrix
//	--effort EFFORT            matrix, high or best
//	-c, --ctx-size N           tokens of a chunk of texts (512)
//	--chunks N                 calibrate with N chunks, as ggquant takes them
//	--process-output           collect importance for the output matrix, too
//	--mmproj TYPE              write the vision or audio encoder; repeatable
//	--evaluate FILE            measure all models over a text
//	--evaluate-chunks N        use only its first N chunks
//	--base-model, --quantized-by, --repository, --template
//	                           as for card
//	--pages                    write a page about each model, as inspect --html does
//	--modelfile                write a Modelfile about each model, as modelfile does
//	--provenance               write provenance.json, and with --key provenance.sigstore.json
//	--key, --certificate       sign the folder, as sign does
//	--no-card                  write no card
//
// # Sign
//
// Signs a folder in the format of OpenSSF Model Signing 1.0, with a private key or with a key and its certificate:
// DIR/model.sig. README.md, hidden files, temporary files and journals are not signed. Sums that a release has taken
// are not taken again. Links, and files that are not what SHA256SUMS and manifest.json have, are refused.
//
//	--key FILE                 the private key, EC on P-256, P-384 or P-521, in PEM; env://NAME: an environment variable
//	--certificate FILE         its certificate, and those of its issuers
//	-o, --output FILE          write to FILE
//	--json                     print one JSON object (docs/json.md)
//	--force                    replace the signature if it exists
//	--threads N                read N files at once (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Push
//
// Publishes a folder: on the Hugging Face hub (hf://ORG/NAME[@BRANCH]), in one commit, or as objects of S3
// (s3://BUCKET/PREFIX). Hidden files, temporary files and journals are left out; links and files that are not what
// SHA256SUMS and manifest.json have are refused. What the server has is not sent again, also after an interruption.
//
//	--dry-run                  print what would be sent; change nothing on the server
//	--private                  create the repository as a private one; refuse one that is public
//	--pull-request             open a pull request instead of changing the branch
//	--message TEXT             the commit's message
//	--uploads N                send N parts at once (4)
//	--force                    replace objects of S3 that have another content
//	--json                     print one JSON object (docs/json.md)
//	--threads N                read N files at once for their sums (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Submit
//
// Prints jobs that run ggconv, ggquant, ggtool release or ggeval (perplexity, compare, imatrix) in parts on a cluster
// whose machines share the folders of input and output, or read and write on servers: shell scripts that call sbatch
// (slurm), the AWS CLI (aws-batch) or the CLI of the hub (hf-jobs), or manifests for kubectl create (k8s, kueue, argo)
// or sky jobs launch (skypilot). Parts run anywhere, at the same time or not, and resume after they were killed; a last job checks and
// renames all. COMMAND is the command that would make the file on one machine. docs/clusters.md has more.
//
//	--parts N                  cut the work into N parts
//	--at-once N                run at most N at the same time (0: all)
//	--retries N                run a part that was killed, or could not read or write, again up to N times (10)
//	--cpus N, --mem SIZE       CPUs and memory of each part
//	--grace TIME               time between the request to stop a part and its kill (30s)
//	--name NAME                call the jobs NAME-parts and NAME-finish
//	--json                     print one JSON object
//
// Slurm:
//
//	--time TIME                time limit of a part, such as 4h, after which it is queued again; also for aws-batch and
//	                           hf-jobs
//	--partition, --account     as sbatch has them
//	--sbatch OPTION            another option of sbatch; repeatable
//
// Kubernetes (k8s), Kueue and Argo:
//
//	--image IMAGE              the image with the commands; also for aws-batch, hf-jobs and skypilot
//	--namespace NAMESPACE      the namespace of all objects, for hf-jobs the user or organization
//	--claim NAME               an existing volume claim; without a volume, input and output are on servers
//	--storage SIZE             or claim a new volume of this size, with --storage-class CLASS
//	--mount PATH               the mount point of the volume and working directory (/work)
//	--user ID                  run as this user and group (65534)
//	--secret NAME              a secret with environment variables such as HF_TOKEN
//	--wait TIME                how long the finishing job waits for the parts (24h)
//	--queue NAME               the LocalQueue of Kueue; the job queue of AWS Batch
//	--service-account ACCOUNT  the account of the pods of Argo
//
// AWS Batch:
//
//	--role, --execution-role   ARNs of the roles of the command and of the agent
//	--secret NAME=ARN          an environment variable and the secret with its value; repeatable
//	--efs ID                   a file system of EFS, mounted at /work
//	--fargate                  run on Fargate
//
// Hugging Face Jobs:
//
//	--flavor FLAVOR            the kind of machine, such as cpu-upgrade
//	--secret NAME              an environment variable, with its value where the script runs; repeatable
//	--volume SOURCE:/PATH      a repository to mount for inputs, such as hf://org/model:/model; repeatable
//
// SkyPilot:
//
//	--setup CODE               shell code that installs the commands, where --image has none
//	--infra PLACE              where the nodes are, such as aws/us-east-1
//	--spot                     nodes that may be taken away
//	--secret NAME              an environment variable that sky jobs launch --secret NAME takes; repeatable
//
// # Reproduce
//
// Repeats the run of ggconv or ggquant that wrote MANIFEST (--manifest), in a temporary folder, and compares the inputs
// first, then all files and tensors. Only flags that decide bytes by their values alone are taken from the manifest;
// files named by other flags have to be named with --input, too. Exit code 6 if outputs differ, 5 if an input differs.
//
//	--input DIR                an input (a file, a folder, an address), or a folder that has inputs; repeatable
//	--output, -o DIR           write into DIR, and keep the files
//	--outside-links            follow links that lead out of a checkpoint
//	--schema                   print the JSON schema of manifests
//	--json                     print one JSON object (docs/json.md)
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Exit codes
//
//	0    done; diff: the models are the same
//	1    input or output failed: disk full, read or write error
//	2    usage: bad flag or argument, DIR not empty, output equals input
//	3    broken input: truncated, wrong magic, missing shard, a weight too large for its type;
//	     verify: found defects
//	4    not supported: architecture (--hf), a type that cannot be decoded
//	5    refused: nothing to pad or compare, already in that byte order; reproduce: an input has changed
//	6    diff, reproduce, hash --check: found differences
//	130  interrupted
//
// # Examples
//
//	ggtool inspect model-Q4_K_M.gguf
//	ggtool inspect --json --full model-Q4_K_M.gguf
//	ggtool name Mixtral-8x7B-v0.1-KQ2.gguf
//	ggtool card --base-model acme/Gollama release
//	ggtool modelfile -o Modelfile model-Q4_K_M.gguf
//	ggtool release docs/examples/gollama.yaml
//	ggtool sign --key key.pem out
//	ggtool verify --public-key key.pub.pem out
//	ggtool push --private out hf://org/Model-GGUF
//	ggtool diff a.gguf b.gguf
//	ggtool export --type bf16 --hf model-Q4_K_M.gguf checkpoint
package main
