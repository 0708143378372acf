// Ggtool looks into GGUF files, edits, cuts, joins and exports them.
//
//	ggtool inspect [flags] FILE
//	ggtool verify [flags] FILE...
//	ggtool diff [--alone] A B
//	ggtool quality [flags] BASE [MODEL...] [--type TYPE...]
//	ggtool hash [flags] FILE
//	ggtool imatrix show [--json] FILE
//	ggtool imatrix check --model FILE MATRIX
//	ggtool imatrix merge FILE... OUT
//	ggtool imatrix convert|strip|fill|remap [flags] FILE OUT
//	ggtool meta [flags] FILE
//	ggtool name [flags] NAME...
//	ggtool split [flags] FILE PREFIX
//	ggtool merge [flags] FIRST OUT
//	ggtool endian [--to big|little] FILE OUT
//	ggtool pad-vocab [flags] FILE OUT
//	ggtool export [flags] FILE DIR
//	ggtool clean [flags] [DIR...]
//	ggtool card [flags] DIR
//	ggtool release PLAN.yaml
//	ggtool submit slurm|k8s [flags] -- COMMAND ARGUMENT...
//
// "ggtool completion SHELL" prints completions for bash, zsh, fish or powershell, "ggtool man" the
// manual page.
//
// With --quiet, or -q, each verb prints only errors, warnings and results: nothing of what it has
// written.
//
// FILE, A and B are GGUF files, or the first of the shards of a model, which are
// taken as one. --alone takes a shard by itself.
//
// # Inspect
//
// Lists the header, the metadata and the tensors: type, dimensions, offset, size and
// bits per weight. Tensors of types that are not known are listed with their number.
//
// FILE may be on a server, hf://ORG/NAME/FILE.gguf, hf://ORG/NAME@REVISION/FILE.gguf or
// https://HOST/PATH, or an object, s3://BUCKET/KEY: little more than the header is fetched. HF_TOKEN and
// HF_ENDPOINT count, and for objects the variables of other tools of S3.
//
//	--json                     print one JSON object
//	--markdown                 print tables of Markdown
//	--full                     print long arrays and strings in full
//	--get KEY                  print only the value of KEY, in full: arrays element by element
//	--tensors EXPRESSION       list only tensors whose names match
//	--alone                    take a shard by itself (also for diff and hash)
//	--html FILE                write a page, too: recipe, layers by type, sizes, memory, tokenizer, metadata
//	--results FILE             (--html) also divergence and perplexity, from a file of ggeval compare --json or a release's quality.json
//	--force                    replace the page if it exists
//
// With --memory it lists what llama.cpp takes to run the model without accelerators:
// weights, caches and states to the byte, compute buffers as an estimate.
//
//	--ctx-size, -c 4k,32k      lengths of context (some, up to the trained one)
//	--cache-type TYPE          type of the cache; KEYS,VALUES of both (f16)
//	--parallel N               N texts at the same time, as llama-server -np N (1)
//	--ubatch-size N            compute N tokens at once (512)
//
// # Verify
//
// Lists everything that is wrong with models: structure, shards, numbers that are not
// finite, vocabulary, keys and dimensions of the architecture. The exit code is 3 if
// anything is; notes are about what loaders take.
//
//	--header-only              do not read the tensors
//	--sums FILE                compare SHA-256 sums with a list as sha256sum writes it
//	                           (a file that is in it several times counts once, two sums of one are an error)
//	--manifest FILE            compare sizes and sums with the manifest of a release or a run
//	--json                     print one JSON object
//	--threads N                use N workers (0: one per CPU)
//
// # Diff
//
// Lists what differs between two models, one line each; the exit code is 6 if
// anything does. Of tensors whose types or data differ it prints how far their numbers
// are apart once decoded: the largest difference and the root of the mean square.
//
// # Quality
//
// Measures the weight error of each MODEL against BASE, from which it was quantized, by tensor, by type and
// all together: RMSE, the same in relation to the weights and weighted by importance, the
// largest error with its column and row, signal to noise, cosine, bits per weight.
//
// BASE and MODEL are what 'ggeval compare' takes: GGUF files, the first of the shards of a model, or
// checkpoint directories, as the files that they would be converted to; all of them may be on a
// server. With --type, what ggquant would make of BASE is compared as well, without writing it.
// Figures are those of the files.
//
//	--type TYPE                a recipe, by name or number; repeatable
//	--imatrix FILE             weigh errors by an importance matrix, too; recipes use it
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
// KIND HASH FILE:TENSOR. Metadata do not count, and shards have the hashes of the joined
// file. The exit code of --check is 6 if a hash is not right.
//
//	--xxh64 --sha1 --sha256    kinds (xxh64 if none is named)
//	--uuid                     UUID version 5, of all tensors together
//	--all                      all of them
//	--no-layer                 only of all tensors together
//	-c, --check FILE           compare with the list in FILE
//	--json                     print one JSON object
//
// # Imatrix
//
// Looks into importance matrices of either format and changes them.
//
//	show       what is known of each tensor and layer: the statistics of
//	           llama-imatrix, and experts that no token has chosen, columns that are 0,
//	           how much of the sum the largest columns have
//	check      whether a matrix fits a model
//	merge      adds matrices, in any mix of formats, as llama-imatrix does
//	convert    writes another format
//	strip      leaves out the folders of the texts' names
//	fill       gives values to experts that no token has chosen
//	remap      makes a matrix of a model with fused tensors that of one with split ones, or back
//
//	--model FILE               the GGUF file whose tensors the matrix is to be of
//	--how uniform|mean         fill with the same for all columns, or with the mean of the other experts
//	--format gguf|dat          format to write
//	--ctx-size, -c N           chunks of legacy files have N tokens (512)
//	--json                     print one JSON object
//	--force                    replace OUT if it exists
//
// # Meta
//
// Changes a file's metadata: where they are, if the header has room, else by writing the
// file anew. A crash meanwhile loses nothing; the next "ggtool meta FILE" ends a change
// that was cut short. Changes are made in the order of this list.
//
//	--copy-from FILE           take keys from another GGUF file
//	--copy PREFIX              of those, the keys that begin with PREFIX only
//	--rename KEY=NEW           give the value of a key another key
//	--remove KEY               remove a key
//	--template FILE            set the chat template: text, or tokenizer_config.json
//	--special-token NAME=TEXT  set a special token, such as eos=</s>, or by its number: eos=#2
//	--set KEY=VALUE            give a key a value, of its type; KEY=TYPE:VALUE of any, KEY=TYPE:[...] arrays
//	--reserve SIZE             leave room for later changes (500M, 1.5G, 2MiB)
//	-o, --output OUT           write OUT, and leave FILE as it is
//	--alone                    change a shard as a file of its own; else FILE is the first of them
//	--dry-run                  only say what would change
//	--force                    replace OUT if it exists
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Name
//
// Reads and checks names of files by the GGUF naming convention: base name, size label,
// fine-tune, version, encoding, type and shard. Names as publishers give them are read, too, with what is not by the
// convention; the exit code is 3 for what is no name of a GGUF file.
//
//	--strict                   exit code 3 for any name that is not by the convention
//	--build                    print what GGUF files would be called by their metadata
//	--encoding NAME            (with --build) call the encoding NAME instead of by general.file_type
//	--json                     print one JSON object: names, each with file, parts, problems, or build
//
// # Clean
//
// Lists what runs that were killed, or whose parts are not put together, have left in directories: temporary
// files and their journals, from which the same command would resume.
//
//	--remove                   remove it, unless a process works on it or it may be another program's
//	--older-than TIME          only what was not written to for that long (90m, 48h)
//	                           (DIR may be s3://BUCKET/FOLDER: uploads that have not become objects)
//	--json                     print one JSON object: leftovers
//
// # Split and merge
//
// Split cuts a model into shards, PREFIX-00001-of-00003.gguf and so on; a model that is in
// shards already is cut anew. Merge joins shards. Tensors are copied as they are, whatever
// their types; files are those of llama-gguf-split. What is read stays.
//
//	--max-tensors N            put at most N tensors into a shard (128)
//	--max-size SIZE            put at most SIZE bytes of tensors into a shard
//	--no-tensor-first-split    put no tensors into the first shard
//	--dry-run                  only list the shards
//	--clean                    (merge) leave out the keys split.no, split.count and split.tensors.count
//	--force                    replace outputs that exist
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Endian
//
// Writes a file in the other byte order, tensors of every type. Of a model in shards, FILE is
// the first, and all are written: OUT.gguf names OUT-00001-of-00003.gguf and so on.
//
//	--alone                    take a shard by itself
//	--to ORDER                 big or little
//	--force                    replace OUT if it exists
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Pad-vocab
//
// Adds tokens [PADn] of type unused to the vocabulary, and rows for them to token embeddings
// and output, which are copied as they are, whatever their type. New rows are 0, and so are
// logits of new tokens, unless --like names a token whose rows they are copies of.
//
//	--size N                   pad to N tokens
//	--multiple N               pad to the next multiple of N tokens, also of --size
//	--like ID                  new rows are copies of those of this token
//	--force                    replace OUT if it exists
//	--json                     print one JSON object
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Export
//
// Writes the tensors, dequantized, as safetensors into DIR, which is made or must be
// empty: no configuration and no tokenizer.
//
//	--type TYPE                auto loses nothing; f32, f16 and bf16 are for all floating-point tensors
//	--hf                       name and arrange tensors as in the Hugging Face checkpoint
//	--max-size SIZE            put at most SIZE bytes of data into a file
//	--force                    write into DIR also if it is not empty, and replace files
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// # Card
//
// Writes the model card of a folder with GGUF files, DIR/README.md: front matter by the rules of
// the Hugging Face hub, a table of the files with their types, sizes, bits per weight and what
// ggeval has measured (files of JSON in DIR), which to take, and where they come from. Parts
// between marks are generated; what is written around them by hand stays. Names and texts of
// metadata are shown as text, whatever is in them.
//
//	--base-model ORG/NAME      the hub's model that the files are quantized from
//	--quantized-by NAME        who quantized them
//	--template FILE            use another template, of Go's text/template: see package card
//	--dry-run                  print the card instead of writing it
//	--json                     print one JSON object: card (its path), written, files and sidecars with file,
//	                           shards, bytes, bits_per_weight, kl_divergence, ppl; warnings
//	--force                    replace a README.md that has no marks
//
// # Release
//
// Makes everything of a published model: quantized models from one read of the source, shards,
// importance matrix, vision or audio encoder, pages about the models, measurements, card, sums and a
// manifest. Files that are up to date are not made again, and the run after a killed one resumes.
// docs/publishing.md describes the plan and the state. HF_ENDPOINT and HF_TOKEN count for
// sources on the hub.
//
//	-o, --output DIR           write into DIR, whatever the plan says
//	--dry-run                  list what would be made, with sizes, time and room on the disk
//	--schema                   print the JSON schema of plans
//	--cache DIR                keep what comes of a source on a server
//	--json                     print one JSON object (docs/json.md)
//	--force                    replace files that no release has made
//	--keep                     keep files of earlier runs that the plan no longer has, out of the card and the sums
//	--threads N                use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//
// Instead of a plan:
//
//	--source SOURCE            checkpoint directory, GGUF file, hf://ORG/NAME[@REVISION] or s3://BUCKET/KEY
//	--type TYPE[,KEY=VALUE...] write a model; with the keys of an output of a plan; repeatable
//	--layout flat|folders      how files are laid out
//	--max-size SIZE            the largest shard
//	--name-template NAME       name files NAME ({name}-{FTYPE}), with the fields of ggquant --name-template
//	--via TYPE                 take a checkpoint as if converted to TYPE first
//	--model-name NAME          what the model of a checkpoint is called
//	--calibrate FILE           make the importance matrix with a text
//	--imatrix FILE             or use this one
//	--effort EFFORT            matrix, high or best
//	-c, --ctx-size N           tokens of a chunk of texts (512)
//	--chunks N                 calibrate with the first N chunks
//	--process-output           collect importance for the output matrix, too
//	--mmproj TYPE              write the vision or audio encoder; repeatable
//	--evaluate FILE            measure all models over a text
//	--evaluate-chunks N        of which only the first N chunks
//	--base-model, --quantized-by, --template
//	                           as for card
//	--pages                    write a page about each model, as inspect --html does
//	--no-card                  write no card
//
// # Submit
//
// Prints jobs that run ggconv, ggquant or ggeval (perplexity, compare, imatrix) in parts on a cluster whose machines
// share the folders of input and output: for sh a script that calls sbatch of Slurm, for kubectl create a manifest.
// Parts run anywhere, at once or not, and resume after they were killed; a last job checks all and renames.
// COMMAND is the command that would make the file on one machine. docs/clusters.md has more.
//
//	--parts N                  cut the work into N parts
//	--at-once N                run at most N at the same time (0: all)
//	--retries N                run a part again N times that was killed, or could not read or write (10)
//	--cpus N, --mem SIZE       what each part gets
//	--grace TIME               ask a part to stop so long before it is killed (30s)
//	--name NAME                call the jobs NAME-parts and NAME-finish
//	--json                     print one JSON object
//
// Slurm:
//
//	--time TIME                a part may run so long, such as 4h, before it is queued again
//	--partition, --account     as sbatch has them
//	--sbatch OPTION            another option of sbatch; repeatable
//
// Kubernetes (k8s):
//
//	--image IMAGE              the image with the commands
//	--namespace NAMESPACE      where everything is
//	--claim NAME               the claim of a volume that there is
//	--storage SIZE             or claim one of this size, of --storage-class CLASS
//	--mount PATH               where the volume is, and where the command runs (/work)
//	--user ID                  run as this user and group (65534)
//	--secret NAME              a secret with environment variables such as HF_TOKEN
//	--wait TIME                the job that finishes waits so long for the parts (24h)
//
// # reproduce
//
//	ggtool reproduce MANIFEST
//
// Repeats the run of ggconv or ggquant that wrote MANIFEST (--manifest), in a temporary folder, and compares the inputs
// first, then all files and tensors. Only those flags of the manifest count that decide bytes by their values alone;
// files that others name have to be named with --input, too. Exit code 6 if something differs, 5 if an input does.
//
//	--input DIR                an input (a file, a folder, an address), or a folder that has inputs; repeatable
//	--output, -o DIR           write into DIR, and leave the files there
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
//	3    broken input: truncated, wrong magic, missing shard, a weight too large for its type
//	4    not supported: architecture (--hf), a type that cannot be decoded
//	5    reproduce: an input has changed
//	6    diff, reproduce: found differences
//	130  interrupted
//
// # Examples
//
//	ggtool inspect model-Q4_K_M.gguf
//	ggtool inspect --json --full model-Q4_K_M.gguf
//	ggtool name Mixtral-8x7B-v0.1-KQ2.gguf
//	ggtool card --base-model acme/Gollama release
//	ggtool release docs/examples/gollama.yaml
//	ggtool diff a.gguf b.gguf
//	ggtool export --type bf16 --hf model-Q4_K_M.gguf checkpoint
package main
