// Ggeval runs language models over a text and says how well they predict it.
//
//	ggeval perplexity [flags] MODEL -f FILE
//	ggeval compare [flags] BASE [MODEL...] [--type TYPE...] -f FILE
//	ggeval sensitivity [flags] MODEL -f FILE
//	ggeval imatrix [flags] MODEL -f FILE -o FILE
//	ggeval imatrix [flags] --in-file FILE... -o FILE
//	ggeval embed [flags] MODEL -f FILE
//	ggeval embed [flags] MODEL --text TEXT
//
// "ggeval completion SHELL" prints completions for bash, zsh, fish or powershell, "ggeval man" the
// manual page.
//
// MODEL and BASE are each a GGUF file, the first of the shards of a model, or a checkpoint directory,
// which gives the same figures as converting it first. Weights are decoded to float32 and
// arithmetic is exact: a figure is the same on every processor and with any number of
// workers. A model whose graph is not known is refused by name.
//
// # Text
//
// The text is taken as it is, but for one newline at its end, and cut into chunks; what is
// left at the end does not count. Each chunk begins with the token for a beginning (BOS),
// in the place of its own first token, if the model's vocabulary asks for one. Bytes that
// are not UTF-8 become byte tokens or U+FFFD, and characters that the vocabulary lacks
// its unknown token, as the runtime takes them, with a warning. All that is as
// llama-perplexity does it.
//
//	-f FILE, --file FILE       the text
//	-e, --escape               take \n, \t, \r, \", \', \\ and \xHH in the text for the characters that they stand for
//	--no-escape                take them as they are, as without either flag
//	-c N, --ctx-size N         tokens of a chunk (512)
//	--chunks N                 take the first N chunks (0: all)
//	--stride N, --ppl-stride N let chunks overlap: each has -c + N/2 tokens, rounded up to a multiple of 256,
//	                           begins N after the one before, and its last N tokens are predicted; none
//	                           begins with BOS but the first. As llama-perplexity does it with -b as large as -c
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
//	-t N, --threads N          use N workers (0: one per CPU)
//	--progress HOW             auto, bar, plain, json (docs/progress.md) or none
//	--json                     print one JSON object
//	--html FILE                write the figures with plots to FILE, too
//	--force                    replace FILE if it exists
//	--quiet, -q                print only errors, warnings and what was asked for
//	--help, --version
//
// # Perplexity
//
// The second half of each chunk is predicted, token by token, but for its first one. The
// perplexity is e to the mean of -ln p of these tokens, with one standard error. With
// --json:
//
//	model, architecture        the model as it was named, and what it is
//	ppl, ppl_error             the perplexity and one standard error
//	loss                       its logarithm, the mean of -ln p
//	running                    the perplexity after each chunk
//	text, tokens               the file, and how many tokens it has
//	chunk, chunks, stride      tokens of a chunk, how many chunks there are, and --stride
//	predicted                  how many tokens the figures are over
//	seconds, tokens_per_second, peak_memory_bytes
//	                           what the run took
//
// A figure that is not finite is null.
//
// # Sensitivity
//
// For each group of tensors and each type, the model in which only these tensors have the
// type is compared with MODEL; nothing is written but the table. A figure has the same bits
// as that of a file of such a model. Types need what they need in ggquant: an importance
// matrix, or --allow-requantize for a MODEL that is quantized already. Groups that cost most
// for each byte that they save come first. What a tensor does not become (vectors, routers)
// is in no group; "all" is everything in a group together.
//
//	--types TYPES              quantize to each of TYPES (Q3_K,Q4_K,Q6_K)
//	--group HOW                what is quantized together: tensor, each alone; role (default), those of
//	                           a name in all layers; layer, those of a layer
//	--imatrix FILE             quantize by the importance matrix in FILE
//	--allow-requantize         permit tensors that are quantized already to change type
//	-o FILE, --output FILE     write the table to FILE, too, as --json prints it
//	--chunks N                 8 without this flag
//
// The fewer chunks, the sooner it is done: time goes with chunks × groups × types, and half of
// it is saved where groups are tensors or layers, since what comes before is the model's own.
// With --json:
//
//	model, architecture, group as above
//	rows                       a list, in the order of kld_per_saved_byte:
//	  group, type              what has which type
//	  tensors                  names
//	  types                    types of tensors whose rows are not whole blocks of type, if there are such
//	  weights, bpw             number of weights in the group, bits for each of them
//	  bytes, base_bytes        size of the group, and in MODEL
//	  kld, kld_error           mean KL divergence of MODEL from it, nats for a token, and one standard error
//	  kld_per_saved_byte       kld by base_bytes - bytes; null if nothing is saved
//	  ln_ppl_ratio, ln_ppl_ratio_error
//	                           logarithm of its perplexity by that of MODEL
//	  same_top                 share of tokens that both find the most probable
//	skipped                    a list of group, type and reason: what cannot have a type
//	text … seconds             as above
//
// # Page
//
// The page of --html has all figures, and plots: of perplexity, its value after each chunk, losses
// by position and how often which occurs; of compare, the divergence by position, the error
// of hidden states by layer, how often which divergence occurs, and divergence by size, with
// all models side by side. It is one file without
// scripts that refers to nothing outside of it; names in it are escaped.
//
// # Compare
//
// How far each MODEL is from BASE, of which it was made, over the tokens that perplexity
// predicts. All go through their layers side by side: BASE is run once, and nothing is
// written to the disk. They must have the same tokens; the text is cut up by BASE's
// tokenizer for all.
//
// With --type, what ggquant would make of BASE is compared as well, without writing it:
// tensors are encoded and decoded as they are read, and figures have the same bits as those
// of the file. These flags are ggquant's, for all recipes:
//
//	--type TYPE                a recipe, by name or number; repeatable
//	--imatrix FILE             use the importance matrix in FILE
//	--include-weights TEXT     use only its entries with TEXT in their names; repeatable
//	--exclude-weights TEXT     do not use its entries with TEXT in their names; repeatable
//	--pure                     give every tensor the recipe's default type
//	--tensor-type PATTERN=TYPE use a type for all tensors that a regular expression matches; repeatable
//	--tensor-type-file FILE    the same with rules in a file
//	--output-tensor-type TYPE, --token-embedding-type TYPE
//	                           use a type for output.weight, for the token embeddings
//	--leave-output-tensor      keep output.weight as it is
//	--allow-requantize         permit tensors that are quantized already to change type
//
// --kl-divergence-base FILE compares with what llama-perplexity has saved of a base with the
// flag of that name: all arguments are MODELs, recipes are of the first, and the text is that
// of FILE; with -f it is checked to be the same. Probabilities in FILE are rounded to 16 bits,
// and those below e^-16 do not count, as in llama-perplexity, whose figures these are; there
// are none of hidden states. With --json:
//
//	base                       model, architecture, bytes, bits_per_weight, ppl, ppl_error
//	models                     for each MODEL the same, recipe if it is BASE by a recipe, and
//	  ppl_ratio                its perplexity by the base's: mean and error, from paired losses
//	  kl_divergence            that of Kullback and Leibler, in nats, of BASE's probabilities from the
//	                           MODEL's: mean, error, median, p90, p95, p99, p99_9 and max
//	  kl_divergence_by_position
//	                           its mean at each predicted position of a chunk
//	  kl_divergence_by_chunk   its mean of each chunk
//	  p_change, p_change_rms   how much the probability of the right token is larger than BASE's: mean and
//	                           error, and those of the root of the mean square
//	  same_top, same_top_5     the share of positions where both have the same most probable token, and that of
//	                           the five most probable ones that both have: mean and error
//	  layers                   how far hidden states are from BASE's, first embeddings, then after each
//	                           layer: rms is the root of the sum of |x-b|² by that of |b|², mean and
//	                           error are those of |x-b|/|b|. Null if MODEL has not the layers of BASE
//	text, tokens, chunk, chunks, stride, predicted, seconds, tokens_per_second, peak_memory_bytes
//	                           as for perplexity
//
// # Importance matrix
//
// For each column of the matrices in the blocks, the sums of what met it in all tokens of all chunks, and of its
// squares: of stacked experts in the tokens that chose them. The file is that of llama-imatrix, tensor for tensor, with
// the counts and numbers of chunks; sums are of exact float32 activations and grow in the order of the text, so that
// the bytes are the same with any number of workers. The name of the text is recorded without its folders.
//
//	-o FILE, --output FILE     write the matrix to FILE
//	--format FORMAT            gguf, or dat: the older one, without counts for each expert
//	--process-output           collect for the matrix that makes logits, too: output.weight, or
//	                           token_embd.weight if the model has no other
//	--parse-special            take the names of control tokens in the text for these
//	--in-file FILE             merge the matrix in FILE, as llama-imatrix does; repeatable. Without MODEL
//	                           only these are merged, and -c is how many tokens a chunk of a file of the
//	                           older format is taken to have
//	--save-every N             take N chunks through the model at once, and save the sums after each N (0: all
//	                           at once)
//	--sum-chunks N             add up each N chunks by themselves, and then these sums (0: all chunks, one after
//	                           the other): what --part needs
//	--force                    replace FILE if it exists
//
// With --save-every the sums so far are in FILE.state, which is a matrix, too. A run that was killed is taken up again
// by the next one with the same output, and gives the same bytes as one that was not; it is refused if the text, -c,
// the model, merged files, --process-output or --sum-chunks are others. FILE.state goes when FILE is there. Every group
// reads the weights once more, and memory is for N chunks. With --json:
//
//	model, architecture        the model as it was named, and what it is; not if there is none
//	output, format, bytes      the file
//	entries                    how many tensors it has
//	chunk_count, chunk_size    how many chunks of how many tokens it is of, merged files included
//	datasets                   texts, those of merged files first
//	merged                     files of --in-file
//	resumed_chunks             how many chunks a run that was interrupted had seen
//	parts                      of how many parts --finish has put it together
//	unseen                     tensors with matrices that no token has met: tensor, count of these, of
//	                           how many
//	text, tokens, chunk, chunks, seconds, tokens_per_second, peak_memory_bytes
//	                           as for perplexity
//
// # Parts
//
// Several processes, on any machines, can each run a share of the chunks of perplexity, compare and
// imatrix. Parts may run at once, in any order, and again; they do not talk to each other:
//
//	--part K/N                 run the K-th of N equal shares of the chunks, from 1 on, and write what comes
//	                           out to OUT.part-K-of-N. Nothing is run if that is there already and whole
//	--part auto                K and N as a job array of Slurm says
//	--part auto/N              K is SLURM_ARRAY_TASK_ID, or JOB_COMPLETION_INDEX of Kubernetes plus 1
//	--finish                   the same command with --finish instead of --part runs nothing: it checks that
//	                           all parts are there, whole and of this job, and makes the output of them
//	--part-files OUT           the name, of perplexity and compare; that of imatrix is -o
//
// What --finish makes has the bits of what one process makes. Parts that are missing, damaged or of another job (model,
// text, flags, version of the program) are named: these have to be run again. Files of parts stay where they are. What
// imatrix adds up depends on the order of additions, in float32: with --sum-chunks N each N chunks are added up by
// themselves and then these sums in the order of the text, in one process as in many; --part without it is refused. A
// share is of whole groups of N chunks, and its file has 8 bytes for each group and column of the matrix. Weights are
// read once for each group. --in-file is for --finish. With --part, --json prints:
//
//	part, output, bytes        "3-of-16", and the file
//	from_chunk, to_chunk, chunks
//	                           the share, from the first on and before the last, and how many there are in all
//	done_before                whether it was there already
//	seconds, tokens_per_second, peak_memory_bytes
//
// # Embed
//
// Vectors of texts, by encoders (BERT and its families, T5's encoder, EmbeddingGemma and others)
// and by models that predict tokens: those of llama-embedding. Each line of -f FILE, or each
// --text, is a text; tokens that stand for something other than text are recognized in it, and
// the vocabulary's own are put at its ends. The vector of a text does not depend on the
// others. With pooling none there is one for each token, with rank there are the scores of a
// classification, which are never divided by a norm. Encoders predict nothing: perplexity and
// compare refuse them.
//
//	--text TEXT                a text, before those of a file; repeatable
//	--pooling HOW              how states of tokens become a vector: none, mean, cls (that of the first token),
//	                           last or rank (default: what the model says, or none)
//	--normalize N, --embd-normalize N
//	                           divide vectors by a norm (2): -1 none, 0 so that the largest value is 32760, 1 taxicab,
//	                           2 Euclidean, more: p-norm
//	--base BASE                say how far vectors are from those of the model BASE: what quantizing an
//	                           embedding model costs
//	-o FILE, --output FILE     write the vectors to FILE, float32, little-endian, one after the other, instead of
//	                           printing them
//
// With --json:
//
//	model, architecture, bytes, bits_per_weight
//	pooling, normalize, width  how vectors were made, and values of each
//	texts, tokens              how many
//	vectors                    a list of numbers for each text, with pooling none a list of such lists; not with -o
//	base                       with --base: model, architecture, bytes, bits_per_weight, and
//	  cosine                   of vectors with the base's: mean, min, p1, p5, p10, median, p90, p95, p99, max
//	  distance                 the same of |x-b|/|b|
//	  cosines                  one for each vector
//	seconds, tokens_per_second, peak_memory_bytes
//
// # Exit codes
//
//	0    done
//	1    input or output failed: read or write error
//	2    usage: bad flag or argument, no text
//	3    broken input: truncated, wrong magic, missing shard, NaN or infinity in weights or on the way
//	4    not supported: an architecture, a key or a tensor that no graph knows, a tokenizer that is not known or missing
//	5    refused: the text is too short, a model that cannot take it, models with other tokens
//	7    parts of a run are missing (--finish)
//	130  interrupted
//
// # Examples
//
//	ggeval perplexity model-Q4_K_M.gguf -f wiki.test.raw
//	ggeval imatrix model-F16.gguf -f calibration.txt -o imatrix.gguf --save-every 50
//	ggeval imatrix model-F16.gguf -f calibration.txt -o imatrix.gguf --sum-chunks 8 --part auto
//	ggeval imatrix model-F16.gguf -f calibration.txt -o imatrix.gguf --sum-chunks 8 --finish
//	ggeval perplexity models/Gollama -f text.txt -c 256 --chunks 20 --json
//	ggeval compare models/Gollama out/*.gguf -f wiki.test.raw
//	ggeval compare model-BF16.gguf --type Q4_K_M --type IQ3_XXS --imatrix imatrix.gguf -f wiki.test.raw
//	ggeval compare --kl-divergence-base base.kld model-Q4_K_M.gguf
//	ggeval sensitivity model-BF16.gguf -f text.txt --types Q2_K,Q4_K --imatrix imatrix.gguf -o table.json
//	ggeval embed bge-small-Q8_0.gguf --base models/bge-small-en-v1.5 -f sentences.txt
package main
