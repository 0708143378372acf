// Ggquant quantizes a GGUF file or a Hugging Face checkpoint.
//
//	ggquant [flags] IN [OUT] TYPE [NTHREADS]
//	ggquant [flags] --out-dir DIR IN TYPE...
//
// IN is a GGUF file, the first of the shards of a model, or a checkpoint directory,
// which gives the same bytes as converting it first. TYPE is a recipe such as Q4_K_M
// or its number; --help lists them. COPY keeps every tensor as it is. Without OUT
// the output is ggml-model-TYPE.gguf next to IN. With --out-dir all TYPEs are written
// in one go, and IN is read once. Flags may be anywhere.
//
// # Importance
//
//	--imatrix FILE             use the importance matrix in FILE, of either format
//	--include-weights TEXT     use only its entries with TEXT in their names; repeatable
//	--exclude-weights TEXT     do not use its entries with TEXT in their names; repeatable
//	--hide-imatrix             do not record the matrix in the output
//	--calibrate TEXT           make the matrix in the same run, with the text in TEXT
//	--effort EFFORT            what --calibrate does: matrix (an importance matrix), high (blocks
//	                           chosen by what layers read as well) or best (one tensor after the other)
//	--hessian FILE             with --effort high: keep the moments that blocks are chosen by in FILE,
//	                           or take them from there instead of running the model
//	-c N, --ctx-size N         cut the text into chunks of N tokens (512)
//	--chunks N                 take the first N chunks (0: all)
//	--process-output           collect for the matrix that makes logits, too
//	--parse-special            take the names of control tokens in the text for these
//
// With --calibrate the output is the same as with a matrix made before, of the same input and with the same flags, by
// "ggeval imatrix -o imatrix.gguf": that is the name that it records, with the text's, both without folders. The
// weights are those of IN, as --via has them; of a checkpoint nothing is written but the output. --dry-run calibrates,
// too: what becomes of a tensor depends on it.
//
// With --effort high, in the same run over the text, the products of all pairs of columns are collected for each input
// of a layer, and the blocks of quantized tensors, of whatever type, are chosen so that what the layer says changes
// least. Types and sizes stay as they are. Each tensor's error, before and now, is in --json, and trace_ratio, about
// what feedback of errors leaves of that of rounding alone: near 1 there is little to gain. quantize.calibration.* in
// the output say what was done. With --resume an interrupted run is gone on from by the same command: the model runs
// over the text again, but nothing is collected or chosen for matrices that are done, which is what takes long; the
// output is that of a run that was not interrupted. What is chosen is in OUT.partial.blocks, which grows to the size of
// the output and is removed in the end. The rows of the embedding are chosen by gradients of what the model predicts,
// over 2048 tokens, where it can be run backwards; elsewhere all of its weights count the same.
//
// With --hessian what --effort high collects is kept in FILE: Σ x xᵀ of each input of a linear layer or expert, the
// importance matrix, and what gradients say of the embedding. If FILE is there already, the model is not run, and the
// output is the same, of whatever types: --calibrate may be left out then. FILE has hashes of the model and of the
// text, and how many chunks of what size it is of: where one of them is another, it is refused. It is never replaced;
// --dry-run makes none. An input of n columns takes 2n(n+1) bytes, more than 8192 columns in ranges of as many: all in
// all about 2(3d² + f²) for a dense layer of width d whose feed-forward part is f wide (10 GB for 32 layers of 4096 and
// 14336), and 2(d² + f²) for each expert. While it is made, as much again is needed next to it. With --part FILE has to
// be there: each part chooses the blocks that it writes, and reports have no losses. To make FILE alone, write a type
// that needs no choice, F16. --effort best has no use for it: there, moments are those of what layers of an output
// read.
//
// With --effort best tensors are chosen one after the other, in the order of the layers: each by what those before it,
// with the blocks that they have by then, hand to it, and so that it makes up for what they lost. Gradients for the
// embedding are of 16384 tokens. For each output that takes about ten times as long as running the model over the text,
// and twice the memory, besides what choosing the blocks itself takes. Each output has a file of its own:
// OUT.partial.blocks, OUT.partial.blocks.2 and so on, all named for the first. A run that goes on takes both models
// through the text again, but collects and chooses only from where the other one ended.
//
// # Types
//
//	--pure                     give every tensor the recipe's default type
//	--leave-output-tensor      keep output.weight as it is
//	--output-tensor-type TYPE  use TYPE for output.weight
//	--token-embedding-type TYPE
//	                           use TYPE for the token embeddings
//	--tensor-type PATTERN=TYPE use TYPE for the tensors that the expression matches; repeatable
//	--tensor-type-file FILE    the same with the rules in FILE, separated by white space
//	--recipe FILE              take types from FILE, lines PATTERN=TYPE
//	--save-recipe FILE         write the types that tensors get to FILE, for --recipe and --tensor-type-file
//	--allow-requantize         permit tensors that are quantized already to change type
//	--strict                   refuse what is otherwise a warning
//
//	--target-bpw N             choose the types that lose the least at N bits per weight
//	--target-size SIZE         or in files of SIZE bytes
//	--like TYPE                or of the size that recipe TYPE has with the same flags
//	--target-kld N             choose the smallest types that let the model diverge by N nats for a token
//	--types T,T                choose among these types, or PATTERN=T,T for tensors that an expression
//	                           matches; repeatable, the first match counts
//	--measure N                hold the last N chunks of the text apart, and measure on them
//
// With one of the four targets, and --calibrate, the types of all tensors that TYPE would convert are chosen, those
// excepted that another option fixes. What each tensor costs at each type is predicted: the divergence of the model in
// which only that tensor is quantized, by gradients over up to 8192 tokens of the text. Of all choices that are not too
// large, header and alignment included, the one with the smallest sum is taken; that is exact. Without --types these
// are Q2_K, Q3_K, IQ4_XS, Q4_K, Q5_K, Q6_K and Q8_0; for rows that are no multiple of 256, IQ4_NL, Q4_1, Q5_0, Q5_1 and
// Q8_0. TYPE still gives general.file_type and the name. A target is for all outputs, or repeated for each TYPE one;
// all share the predictions. With --effort matrix predictions are of the encoder's blocks, with importance; with high
// and best, of blocks chosen as with high, in two passes, at all types: some tensors gain more by it than others. That
// takes a file without a name next to the output, of about twice the size of the model in 16 bits. Errors of several
// tensors do not just add up: the report has the sum, and with --measure what was measured. --target-kld measures in
// any case, on a quarter of the chunks, 16 at most, and multiplies predictions by what they were off, until the
// measured divergence is just below N: each time all blocks are encoded. A model that cannot be run backwards is chosen
// for by errors of what layers say; a warning says so. quantize.types.* in the output say what was done.
//
// A recipe has a rule to a line, PATTERN=TYPE as for --tensor-type; lines that begin with # are comments, which
// --tensor-type-file, here and of llama-quantize, does not take; --save-recipe writes none. The first line that matches
// a tensor counts, after --tensor-type; what no line matches is as in TYPE. A line that matches nothing, or nothing
// that earlier lines have left, is an error. --save-recipe writes one with a line for each tensor, with --dry-run, too.
//
// # Output
//
//	--prune-layers L0,L1,...   leave out layers; later ones move up
//	--override-kv KEY=TYPE:VALUE
//	                           set metadata; TYPE is int, float, bool or str; repeatable
//	--keep-split               write the same shards as the input has
//	--max-size SIZE            write shards of at most SIZE bytes of tensors
//	--max-tensors N            write shards of at most N tensors
//	--output, -o OUT           write to OUT, instead of naming it as an argument; a directory is one for --out-dir
//	--out-dir DIR              write one output for each TYPE into DIR
//	--name-template NAME       name them NAME ({name}-{FTYPE} by default), with the fields that the help lists
//	--force                    replace the output if it exists; not where that is larger and has more bits per
//	                           weight than IN, or IN has the types of TYPE already, as when both are swapped,
//	                           unless --allow-requantize or type COPY is given, too
//	--work-dir FOLDER          make what becomes an object in FOLDER (else in the one for temporary files)
//	--compat reference         write what the reference does also where that is broken
//
// OUT may be an object, s3://BUCKET/KEY, and DIR a folder of objects: outputs are made in a folder of this machine
// and uploaded when all are whole. If that is interrupted, the same command goes on with it. IN may be a file on a
// server, hf://ORG/NAME/FILE.gguf, https://HOST/PATH.gguf or s3://BUCKET/KEY.gguf, which is read by ranges.
//
// # Checkpoint
//
//	--via TYPE                 take the weights as if converted to auto, f32, f16 or bf16 first
//
// and these, as for ggconv: --arch, --model-name, --metadata, --pre, --embed-hf-tokenizer, --fuse-qkv,
// --fuse-gate-up-exps, --fp8-as-q8, --mistral-format, --outside-links, --merge-lora,
// --sentence-transformers-dense-modules, --mtp, --no-nextn, --dspark, --target-model-dir, --mmproj, --remote, --cache.
// With a file they are a usage error.
//
// # Run
//
//	--dry-run                  print the plan and the size, which is exact without --effort high or best; write nothing
//	--json                     print the plan or the result as one JSON object
//	--resume                   go on from what an interrupted run of the same command has left; keep what
//	                           is done if this one fails
//	--part K/N                 write only part K of N; auto, auto/N: as a job array of Slurm or an Indexed
//	                           Job of Kubernetes says
//	--part-files DIR           keep parts in files of their own in DIR
//	--finish                   put the parts together
//	--verify                   read the output back from the disk and compare
//	--manifest FILE            write sizes and sums of inputs, tensors and files to FILE, for ggtool reproduce
//	--threads N                use N workers (0: one per CPU), as NTHREADS does
//	--max-buffer-size SIZE     bound all buffers, in MiB or with a unit; they are small without that
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//	--quiet, -q                print only errors, warnings and what was asked for
//	--help, --version
//
// "ggquant completion SHELL" prints completions for bash, zsh, fish or powershell, "ggquant man" the
// manual page.
//
// # Exit codes
//
//	0    done
//	1    input or output failed: disk full, read or write error
//	2    usage: bad flag or argument, output exists, output equals input
//	3    broken input: truncated, wrong magic, missing shard, NaN or infinity in weights
//	4    not supported: a type that cannot be decoded or encoded, no fallback
//	5    refused: importance matrix missing or not fitting, quantized already, --strict
//	7    parts of a run are missing (--finish)
//	130  interrupted
//
// After any error there is no output file.
//
// # Examples
//
// Quantize a file, with importance, and see what becomes of each tensor first:
//
//	ggquant --dry-run --imatrix im.gguf model-F16.gguf Q4_K_M
//	ggquant --imatrix im.gguf model-F16.gguf model-Q4_K_M.gguf Q4_K_M
//
// The same of a checkpoint, with importance of its own:
//
//	ggquant --calibrate calibration.txt --chunks 100 models/Gollama model-Q4_K_M.gguf Q4_K_M
//
// Three types of a checkpoint, read once:
//
//	ggquant --out-dir out models/Gollama Q8_0 Q5_K_M IQ4_XS
//
// One tensor in another type:
//
//	ggquant --tensor-type attn_v=q8_0 model-F16.gguf model-Q4_K_S.gguf Q4_K_S
package main
