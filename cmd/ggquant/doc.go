// Ggquant quantizes a GGUF file or a Hugging Face checkpoint.
//
//	ggquant [flags] IN [OUT] TYPE [NTHREADS]
//	ggquant [flags] --out-dir DIR IN TYPE...
//
// IN is a GGUF file, the first shard of a model, or a checkpoint directory, which gives
// the same bytes as converting it first. TYPE is a recipe such as Q4_K_M
// or its number; --help lists them. COPY keeps every tensor as it is. Without OUT
// the output is ggml-model-TYPE.gguf next to IN. With --out-dir all TYPEs are written
// in one run, and IN is read once. Flags may be anywhere. llama.cpp is called the
// reference below.
//
// # Importance
//
//	--imatrix FILE             use the importance matrix in FILE, of either format
//	--include-weights TEXT     use only its entries with TEXT in their names; repeatable
//	--exclude-weights TEXT     do not use its entries with TEXT in their names; repeatable
//	--hide-imatrix             do not record the matrix in the output
//	--calibrate TEXT           make the matrix in the same run, with the text in TEXT
//	--effort EFFORT            what --calibrate does: matrix (an importance matrix), high (choose
//	                           blocks by second moments of activations, too) or best (one tensor after
//	                           the other)
//	--hessian FILE             with --effort high: keep the second moments in FILE, or take them from
//	                           there instead of running the model
//	--tune-norms               with --effort high or best: tune the weights of norms at the end
//	-c N, --ctx-size N         cut the text into chunks of N tokens (512)
//	--chunks N                 take the first N chunks, or with --effort high and best N spread over the text
//	                           (0: all)
//	--process-output           collect importance for the output matrix, too
//	--nextn                    collect importance for the MTP (NextN) layers, too; with --effort matrix
//	--parse-special            parse names of control tokens in the text as these tokens
//	--chats                    the text is conversations in JSON, one a line: IN's chat template makes one text of them,
//	                           as for "ggeval imatrix --chats" (docs/judging.md)
//	--template NAME            use this chat template (default: tool_use with tools if there is one, else the default one)
//	--template-arguments JSON  set variables of the chat template to the members of an object
//
// With --calibrate the output is the same as with a matrix made before by "ggeval imatrix -o imatrix.gguf" from the
// same input with the same flags: the output records that name and the text's, both without folders. The model is run
// with the weights of IN, as --via has them; of a checkpoint nothing is written but the output. --dry-run calibrates,
// too, because the plan depends on it.
//
// With --effort high the same run over the text also collects second moments, H = Σ x xᵀ, of the inputs of each linear
// layer, and the blocks of quantized tensors of any type are chosen so that the layer's output changes least. Types and
// sizes stay as they are. --json has each tensor's error before and after, and trace_ratio, the approximate share of
// the rounding error that error feedback leaves: near 1 there is little to gain. quantize.calibration.* in the output
// record the calibration. The same command with --resume resumes an interrupted run: the model runs over the text
// again, but matrices that are done are neither collected nor chosen again, which is what takes long; the output is
// that of an uninterrupted run. Chosen blocks are kept in OUT.partial.blocks, which grows to the size of the output and
// is removed at the end. The rows of the embedding are chosen by gradients of the loss over 1024 tokens, where the
// evaluator has a backward pass for the model; elsewhere all of its weights count the same. With --chunks N, chunks are
// spread evenly over the text, as neighbours are alike, and so is the importance of tensors whose blocks are not chosen.
//
// With --hessian the results of --effort high are kept in FILE: H of each input of a linear layer or expert, the
// importance matrix, and the gradients for the embedding. If FILE exists, the model is not run, and the output is the
// same, for any types: --calibrate may be left out then. FILE records hashes of the model and of the text, and the
// number and size of chunks: it is refused if one of them differs. It is never replaced; --dry-run makes none. An input
// of n columns takes 2n(n+1) bytes (one wider than 8192 is cut into ranges): in total about 2(3d² + f²) for
// a dense layer of width d and FFN width f (10 GB for 32 layers of 4096 and 14336), and 2(d² + f²) for each expert.
// While FILE is made, as much space again is needed next to it. With --part FILE must exist: each part chooses the
// blocks that it writes, and reports have no losses. To make only FILE, use TYPE F16, which needs no choices. --effort
// best cannot use FILE: its moments are those of the inputs in the quantized model of each output.
//
// With --tune-norms the weights of norms, which stay F32, are tuned once the blocks are chosen: in 24 steps of 2048
// tokens along the gradient of the KL divergence of the output's probabilities from those of IN. One of eight chunks of
// the text, at most 8192 tokens, is held apart: the step after which the divergence on these is lowest is kept, and if
// none is lower than before, norms stay as they are, with a warning. Types, sizes and blocks are the same;
// quantize.calibration.norms records it, and --json has the divergences (norms). It takes as long as running the model
// over some 300,000 tokens, for each output; memory is that of a backward pass over 2048 tokens, 8 KiB for each layer and
// column of the residual stream and some more. Steps are kept in OUT.partial.norms for --resume. A model that the
// evaluator cannot run backwards is refused before any work (exit code 4).
//
// With --effort best the blocks of one tensor after the other are chosen, in the order of the layers: by the
// activations of the model whose earlier tensors are quantized already, and so that the tensor corrects their errors.
// Gradients for the embedding are over 16384 tokens. For each output this takes about ten times as long as running the
// model over the text, and twice the memory, plus the time to choose the blocks. Each output has a file of its own:
// OUT.partial.blocks, OUT.partial.blocks.2 and so on, all named for the first. A resumed run runs both models over the
// text again, but collects and chooses only from where the interrupted one ended.
//
// # Types
//
//	--pure                     give every tensor the recipe's default type
//	--leave-output-tensor      keep output.weight as it is
//	--output-tensor-type TYPE  use TYPE for output.weight
//	--token-embedding-type TYPE
//	                           use TYPE for the token embeddings
//	--tensor-type PATTERN=TYPE use TYPE for the tensors that the expression matches; repeatable
//	--tensor-type-file FILE    the same with rules from FILE, separated by white space
//	--recipe FILE              take types from FILE, lines PATTERN=TYPE
//	--save-recipe FILE         write the types that tensors get to FILE, for --recipe and --tensor-type-file
//	--allow-requantize         permit quantized tensors to change type
//	--strict                   turn warnings into errors
//
//	--target-bpw N             choose the types that lose the least at N bits per weight
//	--target-size SIZE         or in files of SIZE bytes
//	--like TYPE                or of the size that recipe TYPE has with the same flags
//	--target-kld N             choose the smallest types with a KL divergence of at most N nats per token
//	--types T,T                choose among these types, or PATTERN=T,T for tensors that an expression
//	                           matches; repeatable, the first match counts
//	--measure N                hold out the last N chunks of the text, and measure on them
//
// With one of the four targets, and --calibrate, types are allocated to all tensors that TYPE would convert, except
// those that another option fixes (bit allocation). The loss of each tensor at each type is predicted: the divergence
// of the model in which only that tensor is quantized, by gradients over up to 8192 tokens of the text. Of all
// allocations within the size, header and alignment included, the one with the smallest sum is taken; this is exact.
// The default candidates are Q2_K, Q3_K, IQ4_XS, Q4_K, Q5_K, Q6_K and Q8_0; for rows that are no multiple of 256,
// IQ4_NL, Q4_1, Q5_0, Q5_1 and Q8_0. TYPE still gives general.file_type and the name. One target holds for all outputs,
// or one is given for each TYPE; all share the predictions. With --effort matrix, predictions are for the encoder's
// blocks, with importance; with high and best, for blocks chosen as with high, in two passes, at all types, because
// some tensors gain more by this than others. That takes an unnamed file next to the output, about twice the size of
// the model in 16 bits. Errors of several tensors do not simply add up: the report has the predicted sum, and with
// --measure the measured divergence. --target-kld always measures, on a quarter of the chunks, at most 16, and scales
// the predictions by the ratio until the measured divergence is just below N: all blocks are encoded each time. For a
// model without a backward pass, types are allocated by the errors of the layers' outputs, with a warning.
// quantize.types.* in the output record the allocation.
//
// A recipe file has one rule per line, PATTERN=TYPE as for --tensor-type. Lines that begin with # are comments;
// --tensor-type-file, here and of llama-quantize, does not accept these, and --save-recipe writes none. The first line
// that matches a tensor counts, after --tensor-type; tensors without a match have the types of TYPE. A line that
// matches no tensor, or only tensors of earlier lines, is an error. --save-recipe writes a line for each tensor, also
// with --dry-run.
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
//	--force                    replace the output if it exists. If IN and OUT look swapped (OUT is larger and has
//	                           more bits per weight than IN, or IN has the types of TYPE already),
//	                           --allow-requantize or type COPY is needed, too
//	--work-dir FOLDER          make files to be uploaded in FOLDER (default: the temporary folder)
//	--compat reference         write the bytes of the reference even where they are broken
//
// OUT may be an object, s3://BUCKET/KEY, and DIR a folder of objects: outputs are made in a local folder and uploaded
// when all are whole. The same command resumes an interrupted upload. With --part and --finish parts send pieces of the
// objects instead, and no folder is used unless --work-dir or --part-files is given (docs/clusters.md). IN may be a file on a server,
// hf://ORG/NAME/FILE.gguf, https://HOST/PATH.gguf or s3://BUCKET/KEY.gguf, which is read by ranges.
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
//	--resume                   resume an interrupted run of the same command; keep what is done if this
//	                           one fails
//	--part K/N                 write only part K of N; auto, auto/N: K from a scheduler, as
//	                           docs/clusters.md lists them
//	--part-files DIR           keep parts in files of their own in DIR
//	--finish                   put the parts together
//	--verify                   read the output back from the disk and compare
//	--manifest FILE            write sizes and sums of inputs, tensors and files to FILE, for ggtool reproduce
//	--threads N                use N workers (0: one per CPU), as NTHREADS does
//	--max-buffer-size SIZE     bound all buffers, in MiB or with a unit; they are small by default
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//	--quiet, -q                print only errors, warnings and requested results
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
//	5    refused: importance matrix missing or not fitting, input quantized already, --strict
//	7    parts of a run are missing (--finish)
//	130  interrupted
//
// After any error there is no output file.
//
// # Examples
//
// Quantize a file with an importance matrix, and see the plan for each tensor first:
//
//	ggquant --dry-run --imatrix im.gguf model-F16.gguf Q4_K_M
//	ggquant --imatrix im.gguf model-F16.gguf model-Q4_K_M.gguf Q4_K_M
//
// The same from a checkpoint, with an importance matrix made in the same run:
//
//	ggquant --calibrate calibration.txt --chunks 100 models/Gollama model-Q4_K_M.gguf Q4_K_M
//
// Three types from a checkpoint, read once:
//
//	ggquant --out-dir out models/Gollama Q8_0 Q5_K_M IQ4_XS
//
// Another type for attn_v tensors:
//
//	ggquant --tensor-type attn_v=q8_0 model-F16.gguf model-Q4_K_S.gguf Q4_K_S
package main
