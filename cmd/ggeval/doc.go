// Ggeval runs language models over a text and measures how well they predict it.
//
//	ggeval perplexity [flags] MODEL -f FILE
//	ggeval compare [flags] BASE [MODEL...] [--type TYPE...] -f FILE
//	ggeval sensitivity [flags] MODEL -f FILE
//	ggeval imatrix [flags] MODEL -f FILE -o FILE
//	ggeval imatrix [flags] --in-file FILE... -o FILE
//	ggeval perplexity [flags] MODEL -f TARGETS --source SOURCES
//	ggeval embed [flags] MODEL -f FILE
//	ggeval embed [flags] MODEL --text TEXT
//	ggeval task [flags] KIND MODEL... -f FILE
//	ggeval trajectory [flags] BASE MODEL... -f FILE
//	ggeval trajectory [flags] MODEL... --paths FILE
//	ggeval score [flags] MODEL... -f FILE
//	ggeval serve [flags] MODEL
//
// "ggeval completion SHELL" prints completions for bash, zsh, fish or powershell, "ggeval man" the
// manual page.
//
// MODEL and BASE are each a GGUF file, the first shard of a model, or a checkpoint directory,
// which gives the same figures as converting it first. Weights are decoded to float32 and
// arithmetic is exact: a figure is the same on every processor and with any number of
// workers. Architectures without an evaluator are refused by name.
//
// # Text
//
// The text is taken as it is, except for one newline at its end, and cut into chunks; a
// shorter rest at the end is not used. If the vocabulary asks for a BOS token, it replaces
// the first token of each chunk. Bytes that are not UTF-8 become byte tokens or U+FFFD, and
// characters that the vocabulary lacks become its unknown token, as in llama.cpp, with a
// warning. llama-perplexity does all of this in the same way.
//
//	-f FILE, --file FILE       the text
//	-e, --escape               expand \n, \t, \r, \", \', \\ and \xHH in the text
//	--no-escape                do not (the default)
//	-c N, --ctx-size N         tokens of a chunk (512)
//	--chunks N                 take the first N chunks (0: all)
//	--stride N, --ppl-stride N let chunks overlap: each has -c + N/2 tokens, rounded up to a multiple of 256,
//	                           begins N after the one before, and its last N tokens are predicted; only the
//	                           first begins with BOS. llama-perplexity does the same with -b as large as -c
//	--parse-special            parse names of control tokens in the text as these tokens (perplexity, compare, imatrix)
//
// # Sources
//
// An encoder-decoder (T5) predicts a text for a source. perplexity, compare and imatrix run it over pairs of lines:
//
//	--source FILE              line i of -f is the text that the decoder is to say for line i of FILE
//
// The encoder reads the tokens of the source, with those that the vocabulary adds (EOS). The decoder reads the start
// token (decoder_start_token_id, without that key BOS, as in llama.cpp) and the target, and every token of the target,
// and EOS after it, is predicted. Each pair is a chunk, so that --chunks, --save-every and --sum-chunks count pairs;
// -c, --stride, --part, --finish, --html and --kl-divergence-base do not go with it. Escapes are expanded in each line.
// Without --source such a model is refused, and with it any other. Logits are those of llama.cpp, which does not divide
// the decoder's states by √n_embd where the output matrix is the embedding, as the first T5 models do.
//
// # KV cache
//
// perplexity, compare, task and score run models as if keys and values were in a KV cache of other types, as in
// llama.cpp:
//
//	-ctk TYPE, --cache-type-k TYPE
//	                           keep keys as f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0 or q5_1 (default: f32; f16 if
//	                           only -ctv is given)
//	-ctv TYPE, --cache-type-v TYPE
//	                           the same for values
//	--no-cache-rotation        do not rotate keys and values before they are quantized: llama.cpp with
//	                           LLAMA_ATTN_ROT_DISABLE=1
//	--cache-types LIST         (compare) BASE with each of these caches is compared with BASE: TYPE, or KEYS:VALUES, with
//	                           commas between them
//
// Each head's key and value of a token, after RoPE and norms, is encoded by itself and decoded again. Heads of a
// multiple of 64 values are rotated before a quantized type, and back, as llama.cpp does, but not the vector that MLA
// keeps. Queries are not rounded. Caches that llama.cpp refuses for a model are refused, too. perplexity prints the
// divergence from a cache of F16, and runs the model with both side by side, unless it writes probabilities
// (--save-logits). In compare, -ctk and -ctv are for the MODELs; BASE has a cache of F16 if there is any of these
// flags, else F32. docs/judging.md has the rules and figures.
//
// # Conversations
//
// perplexity, compare and imatrix take conversations in place of a text (docs/judging.md):
//
//	--chats                    each line of -f is a conversation in JSON: a list of messages, or an object with messages,
//	                           tools and further variables of the template, or with conversations, as in files of
//	                           ShareGPT. The model's chat template makes a text of each, as transformers does
//	--template NAME            use this chat template (default: tool_use with tools if there is one, else the default one)
//	--template-arguments JSON  set variables of the template to the members of an object
//	--loss WHOM                assistant (default): predict what the assistant says; all: every token but the first
//
// For perplexity and compare each conversation is a sequence of its own, of which every token of the assistant is
// predicted; -c N takes its first N tokens, --chunks N the first N conversations. If lines have a category (a text),
// there are figures of each. --escape, --source, --stride, --part, --finish, --save-logits and --kl-divergence-base do
// not go with it. For imatrix all conversations are one text in chunks of -c tokens, with control tokens: the one that
// "ggtool render --chats" prints.
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
//	--html FILE                write a page with the figures and plots to FILE, too
//	--force                    replace FILE if it exists
//	--quiet, -q                print only errors, warnings and requested results
//	--help, --version
//
// # Perplexity
//
// The second half of each chunk is predicted, token by token, except its first token. The
// perplexity is exp(mean of -ln p) over these tokens, with one standard error. With
// --json:
//
//	model, architecture        the model as given, and its architecture
//	ppl, ppl_error             the perplexity and one standard error
//	loss                       its logarithm, the mean of -ln p
//	running                    the perplexity after each chunk
//	cache                      types of a KV cache other than F32: keys, values, and rotation, which --no-cache-rotation
//	                           turns off
//	f16_cache                  the model with a cache of F16, if that is another: ppl, ppl_error; ppl_ratio of the model to
//	                           it, kl_divergence and same_top, as for compare
//	text, tokens               the file, and its number of tokens; with --source, those that the model reads
//	source                     the file of --source
//	conversations, loss_of     with --chats, their number, and whose tokens are predicted
//	categories                 with --chats, for each category: category, conversations, predicted, ppl, ppl_error
//	chunk, chunks, stride      tokens of a chunk, the number of chunks, and --stride
//	predicted                  the number of predicted tokens
//	seconds, tokens_per_second, peak_memory_bytes
//	                           the cost of the run
//
//	saved_logits, saved_logits_bytes
//	                           the file of --save-logits, and its size
//
// A figure that is not finite is null. And:
//
//	--save-logits FILE, --save-all-logits FILE
//	                           write ln of the probability of each token of the vocabulary at each of these positions to
//	                           FILE: the file that llama-perplexity --kl-divergence-base writes. That program reads it,
//	                           and so does ggeval compare --kl-divergence-base. A chunk of 512 tokens takes 65 MB for
//	                           a vocabulary of 128,000. Not with --stride, --source, --part and --finish
//
// # Sensitivity
//
// For each group of tensors and each type, MODEL is compared with a variant in which only
// these tensors have the type; only the table is written. A figure has the same bits as
// with a file of the variant. Types have the requirements of ggquant: an importance
// matrix, or --allow-requantize if MODEL is quantized. Groups with the highest cost per
// saved byte come first. Tensors that are never quantized (vectors, routers) are in no
// group; group "all" has the tensors of all groups.
//
//	--types TYPES              quantize to each of TYPES (Q3_K,Q4_K,Q6_K)
//	--group HOW                which tensors are quantized together: tensor, each alone; role (default),
//	                           the same name in all layers; layer, those of one layer
//	--imatrix FILE             use the importance matrix in FILE
//	--allow-requantize         permit quantized tensors to change type
//	-o FILE, --output FILE     write the table to FILE, too, in the format of --json
//	--chunks N                 take the first N chunks (8)
//
// Time is proportional to chunks × groups × types. With groups of tensors or layers it is about
// half, because layers before the group have the same results as in MODEL.
// With --json:
//
//	model, architecture, group as above
//	rows                       a list, in the order of kld_per_saved_byte:
//	  group, type              the group and its type
//	  tensors                  names
//	  types                    fallback types of tensors whose rows are not whole blocks of type, if any
//	  weights, bpw             number of weights in the group, bits per weight
//	  bytes, base_bytes        size of the group, and in MODEL
//	  kld, kld_error           mean KL divergence of MODEL from the variant in nats per token, and one standard error
//	  kld_per_saved_byte       kld / (base_bytes - bytes); null if nothing is saved
//	  ln_ppl_ratio, ln_ppl_ratio_error
//	                           logarithm of its perplexity divided by that of MODEL
//	  same_top                 share of positions where both have the same most probable token
//	skipped                    a list of group, type and reason: types that a group cannot have
//	text … seconds             as above
//
// # Page
//
// The page of --html has all figures, and plots: for perplexity, its value after each chunk,
// losses by position and their distribution; for compare, the divergence by position, the error
// of hidden states by layer, the distribution of divergences, and divergence by size, with all
// models side by side. It is one file without scripts and external references; names in it are
// escaped.
//
// # Compare
//
// Measures the divergence of each MODEL from BASE, from which it was quantized, over the tokens
// that perplexity predicts. All models run layer by layer side by side: BASE is run once, and
// nothing is written to the disk. They must have the same vocabulary; the text is tokenized by
// BASE's tokenizer for all.
//
// With --type, the output that ggquant would make of BASE is compared as well, without writing
// it: tensors are encoded and decoded as they are read, and figures have the same bits as those
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
//	--allow-requantize         permit quantized tensors to change type
//
// --kl-divergence-base FILE compares with logits of a base that llama-perplexity has saved with
// its flag of that name: all arguments are MODELs, recipes apply to the first, and the text is
// that of FILE; with -f it is checked to be the same. Probabilities in FILE are rounded to 16
// bits, and those below e^-16 do not count: figures are those of llama-perplexity. There are no
// figures of hidden states. With --json:
//
//	base                       model, architecture, bytes, bits_per_weight, ppl, ppl_error
//	                           cache as for perplexity
//	models                     for each MODEL the same, recipe if it is BASE quantized by --type, and
//	  ppl_ratio                its perplexity divided by the base's: mean and error, from paired losses
//	  kl_divergence            KL divergence of BASE's probabilities from the MODEL's, in nats: mean,
//	                           error, min, p1, p5, p10, median, p90, p95, p99, p99_9 and max
//	  kl_divergence_by_position
//	                           its mean at each predicted position of a chunk; null with --source
//	  kl_divergence_by_chunk   its mean over each chunk
//	  loss_correlation         correlation of -ln p with BASE's, over positions
//	  p_change                 the probability of the correct token minus BASE's: mean, error, min, p0_1, p1, p5, p10,
//	                           p25, median, p75, p90, p95, p99, p99_9 and max
//	  p_change_rms             root of its mean square: mean and error
//	  same_top, same_top_5     share of positions where both have the same most probable token, and share of
//	                           the five most probable tokens that both have: mean and error
//	  layers                   error of hidden states against BASE's, of embeddings first, then after each
//	                           layer: rms is the root of Σ|x-b|² / Σ|b|², mean and error are those of
//	                           |x-b|/|b|. Null if MODEL does not have the layers of BASE
//	pairs                      a list with each two MODELs:
//	  a, b                     their names
//	  kl_difference            the divergence of a less that of b: mean, and its error, which is that of the means of
//	                           chunks, since positions of a chunk depend on each other
//	  closer                   "a" or "b", the closer one to BASE, if they differ by more than two errors over at least
//	                           8 chunks, else ""
//	text, tokens, chunk, chunks, stride, predicted, seconds, tokens_per_second, peak_memory_bytes
//	                           as for perplexity
//
// # Importance matrix
//
// Collects, for each column of the matrices in the blocks, the sums of its input activations and of their squares over
// all tokens of all chunks; for stacked experts, over the tokens routed to them. The file is that of llama-imatrix,
// tensor for tensor, with the counts and numbers of chunks. Sums are of exact float32 activations in the order of the
// text, so that the bytes are the same with any number of workers. The name of the text is recorded without folders.
//
//	-o FILE, --output FILE     write the matrix to FILE
//	--chunk N, --from-chunk N  leave out the first N chunks of the text; --chunks counts from there. Matrices of shares
//	                           of a text can be merged
//	--format FORMAT            gguf, or dat: the legacy format, without counts for each expert
//	--process-output           collect importance for the output matrix, too: output.weight, or
//	                           token_embd.weight if the model has no other
//	--nextn                    run the MTP (NextN) layers, too, and collect importance for them: for each token with the
//	                           state of the token before it, of a second such layer with that of the first
//	--in-file FILE             merge the matrix in FILE, as llama-imatrix does; repeatable. Without MODEL
//	                           only these are merged, and chunks of files in the legacy format count
//	                           as -c tokens
//	--save-every N             run N chunks at once, and save the sums after each N (0: all at once)
//	--sum-chunks N             add up each N chunks separately, and then these sums (0: all chunks, one after
//	                           the other); needed for --part
//	--force                    replace FILE if it exists
//
// With --save-every the sums so far are in FILE.state, also an importance matrix. The next run with the same output
// resumes one that was killed, and gives the same bytes as an uninterrupted run; it is refused if the text, -c, --chunk,
// --parse-special, the model, merged files, --process-output, --nextn or --sum-chunks differ. FILE.state is removed when
// FILE is written. Every group reads the weights once more, and memory is for N chunks. With --json:
//
//	model, architecture        the model as given, and its architecture; left out without MODEL
//	output, format, bytes      the file
//	entries                    number of tensors in it
//	chunk_count, chunk_size    number of chunks, and of tokens in each, merged files included
//	nextn_layers               number of MTP (NextN) layers that it has, if any
//	datasets                   texts, those of merged files first
//	merged                     files of --in-file
//	resumed_chunks             number of chunks that an interrupted run had done
//	parts                      number of parts that --finish has put together
//	unseen                     tensors with matrices that saw no token (experts never chosen): tensor, count
//	                           of these, of how many
//	text, tokens, chunk, chunks, seconds, tokens_per_second, peak_memory_bytes
//	                           as for perplexity
//
// # Parts
//
// Several processes, on any machines, can each run a share of the chunks of perplexity, compare and
// imatrix. Parts are independent: they may run at the same time, in any order, and again.
//
//	--part K/N                 run the K-th of N equal shares of the chunks, K from 1, and write the result
//	                           to OUT.part-K-of-N. If that file is there already and whole, nothing is run
//	--part auto                K and N from a scheduler, as docs/clusters.md lists them
//	--part auto/N              K from a scheduler, also one that does not know N
//	--finish                   instead of --part: run nothing, check that all parts are there, whole, and belong
//	                           to this job, and make the output from them
//	--part-files OUT           the name; imatrix uses -o without it. s3://BUCKET/KEY makes objects
//
// -o of imatrix and --html may be objects, too, and -f, --source, --in-file and --imatrix files on servers: s3://,
// https://, hf://ORG/NAME/FILE, hf://datasets/ORG/NAME/FILE.
//
// The output of --finish has the same bits as that of one process. Parts that are missing, damaged, or belong to
// another job (model, text, flags, version of the program) are named and have to be run again. Part files are not
// removed. The float32 sums of imatrix depend on the order of additions: with --sum-chunks N each N chunks are added up
// by themselves, and then these sums in the order of the text, in one process as in many; --part without it is refused.
// A share has whole groups of N chunks, and its file has 8 bytes for each group and column of the matrix. Weights are
// read once for each group. --in-file is given with --finish. With --part, --json prints:
//
//	part, output, bytes        "3-of-16", and the file
//	from_chunk, to_chunk, chunks
//	                           the share, from the first chunk to before the last, and the number of all chunks
//	done_before                whether the part was there already
//	seconds, tokens_per_second, peak_memory_bytes
//
// # Embed
//
// Computes embeddings of texts as llama-embedding does, by encoders (BERT and its families, T5's
// encoder, EmbeddingGemma and others) and by models that predict tokens. Each line of -f FILE, or
// each --text, is a text; special tokens in it are parsed, and those of the vocabulary (BOS, EOS,
// CLS, SEP) are added. The vector of a text does not depend on the others. With pooling none there
// is one vector per token; with rank there are the scores of a classifier, which are never
// normalized. Encoders predict no tokens: perplexity and compare refuse them.
//
//	--text TEXT                a text, before those of a file; repeatable
//	--pooling HOW              how to pool hidden states: none, mean, cls (first token), last or rank
//	                           (default: the model's metadata, else none)
//	--normalize N, --embd-normalize N
//	                           divide vectors by a norm (2): -1 none, 0 so that the largest value is 32760, 1 taxicab,
//	                           2 Euclidean, more: p-norm
//	--base BASE                compare vectors with those of the model BASE: the cost of quantizing an
//	                           embedding model
//	-o FILE, --output FILE     write the vectors to FILE, float32, little-endian, one after the other, instead of
//	                           printing them
//
// With --json:
//
//	model, architecture, bytes, bits_per_weight
//	pooling, normalize, width  pooling, norm and length of vectors
//	texts, tokens              their numbers
//	vectors                    a list of numbers for each text, with pooling none a list of such lists; not with -o
//	base                       with --base: model, architecture, bytes, bits_per_weight, and
//	  cosine                   of vectors with the base's: mean, min, p1, p5, p10, median, p90, p95, p99, max
//	  distance                 the same of |x-b|/|b|
//	  cosines                  one for each vector
//	seconds, tokens_per_second, peak_memory_bytes
//
// # Task
//
// Scores each MODEL by the tasks in a file, which has the format of llama-perplexity: KIND is hellaswag (text: six
// lines for each task), winogrande (CSV) or multiple-choice (binary, also of MMLU, ARC and TruthfulQA). Chosen is the
// answer with the largest mean of ln p over its tokens. With several MODELs the others are compared with the first, task
// by task. docs/evaluation.md has the rules.
//
//	-f FILE, --file FILE       the tasks
//	--tasks N                  draw N tasks at random, the ones that llama-perplexity draws, in its order (0: all; default:
//	                           400 of hellaswag, all of others). Those of hellaswag are in random order in any case.
//	                           Also: --hellaswag-tasks, --winogrande-tasks, --multiple-choice-tasks
//	--compat llama.cpp         give the figures of llama-perplexity also where it slips (or reference)
//	--type TYPE                score what ggquant would make of the first MODEL, too: as for compare, with the flags
//	                           that go with it
//
// For one MODEL the lines of llama-perplexity are printed, the score after each task. With --json:
//
//	task, file, tasks          KIND, the file, and how many tasks were scored
//	order                      their numbers in the file, from 0, in the order of the lists below
//	chance                     accuracy of a random choice: mean and error
//	models                     for each MODEL:
//	  model, architecture, bytes, bits_per_weight, recipe, cache
//	  accuracy, accuracy_error share of tasks whose chosen answer is right, and one standard error
//	  accuracy_low, accuracy_high
//	                           Wilson's interval of 95 %
//	  accuracy_by_sum, accuracy_by_bytes
//	                           the same if sums of ln p decide, and sums divided by the bytes of the answer
//	  running                  accuracy after each task
//	  chosen, right            for each task the answer, from 0 (-1: none), and whether it is right
//	  means                    for each task the mean of ln p of each answer; null if it has no token to score
//	  change                   of MODELs after the first, against it:
//	    accuracy               difference of accuracies: mean and error, of paired tasks
//	    lost, gained           tasks that only the first MODEL has right, and only this one
//	    margin                 mean change of the right answer's mean of ln p less the largest wrong one: mean and error
//	seconds, tokens_per_second, peak_memory_bytes
//
// # Score
//
// Answers requests of an evaluation harness: how probable each MODEL finds continuations of contexts, and whole texts.
// Each line of the file is a JSON object, and so is each line of the output, in the same order, for several MODELs one
// after the other. All requests go through a model in one run. An object is one of
//
//	{"context": C, "continuation": C}
//	{"prompt": C, "choices": [C, ...]}
//	{"text": C}
//
// C is a text or a list of token ids. Each may have an "id", a string or an integer, which the answer repeats. Texts
// become tokens by the rules of lm-evaluation-harness: blanks at the end of a context belong to the continuation, whose
// tokens are those that tokens(context + continuation) has after as many as the context's; before an empty context comes
// BOS, or EOS, before others BOS if the vocabulary adds it. docs/judging.md has more.
//
//	-f FILE, --file FILE       the requests
//	--max-length N             let the model read at most N tokens at once (0: as many as it was trained with). Longer
//	                           contexts lose their beginning, and longer texts are cut into windows
//	--parse-special            parse names of control tokens in texts as these tokens
//	-o FILE, --output FILE     write the answers to FILE instead of printing them
//	--force                    replace FILE if it exists
//	--type TYPE                score what ggquant would make of the first MODEL, too: as for compare, with the flags
//	                           that go with it
//
// An answer has
//
//	line, id                   of the request
//	model                      MODEL, if there are several
//	logprob, mean              sum of ln p over the tokens of the continuation or text, and their mean
//	is_greedy                  whether each of them is the most probable token
//	tokens, bytes              how many these are, and the bytes of the continuation
//	context_tokens             how many tokens the model reads before them
//	cut                        true if that is less than the context, or the text is cut
//	choices                    of a request with choices these fields for each, and which has the largest sum, mean, and sum
//	                           divided by bytes: largest, largest_mean, largest_per_byte, from 0
//
// With --json one object is printed:
//
//	file, requests             the file, and how many requests it has
//	output, output_bytes       the file of -o, and its size
//	models                     for each MODEL: model, architecture, bytes, bits_per_weight, recipe, logprob, tokens, cut
//	answers                    the answers, without -o
//	seconds, tokens_per_second, peak_memory_bytes
//
// # Trajectory
//
// BASE continues each prompt by some tokens, each the most probable one, the first of equals; a token that ends a text is
// one like others. Of each MODEL it is counted how many of them it would have chosen before its first other choice. Until
// then its context is BASE's, so one run over prompts and continuations tells. BASE runs once for each token, but fewer
// times where a text repeats itself. With --json:
//
//	-f FILE, --file FILE       the prompts, a JSON object in each line: {"prompt": C}, C a text or a list of token ids
//	--predict N, --n-predict N
//	                           let BASE continue each prompt by N tokens (32)
//	--chats                    each line is a conversation in JSON that waits for the assistant's answer; answers at its end
//	                           are left out. With --template and --template-arguments as for perplexity
//	--parse-special            parse names of control tokens in prompts as these tokens
//	-o FILE, --output FILE     write prompts and continuations to FILE, as tokens
//	--paths FILE               take them from such a file: there is no BASE. Its vocabulary must be that of each MODEL
//	--force                    replace FILE if it exists
//	--type TYPE                take what ggquant would make of the first model as a MODEL, as for score
//
//	file, base, output         the file with prompts or continuations, the name of BASE, and the file of -o
//	tokens, prompts            tokens of a continuation, and number of prompts
//	models                     for each MODEL: model, recipe, architecture, bytes, bits_per_weight, and
//	  whole                    share of continuations that it follows to their end: mean, and error over prompts
//	  length                   how many tokens it follows: mean and error
//	  lengths                  the same for each prompt
//	pairs                      for each two MODELs: a, b, length_difference (mean and error, of paired prompts), and longer:
//	                           "a" or "b" if they differ by more than two errors over at least 8 prompts, else ""
//	seconds, tokens_per_second, peak_memory_bytes
//
// # Serve
//
// Answers requests of evaluation harnesses over HTTP until SIGINT or SIGTERM: the probabilities of a prompt, and its most
// probable next token, by POST /v1/completions, and the tokenizer by /tokenize, /detokenize and /tokenizer_info. It
// generates no texts. Requests that come within a few milliseconds, or wait for the model, go through it together.
// docs/judging.md describes the requests. The address is printed first, with --json as an object with model, architecture
// and address.
//
//	--address HOST:PORT        answer at this address (127.0.0.1:8080); port 0 is a free one
//	--allow-remote             permit an address that other machines reach: there are no passwords
//
// # Exit codes
//
//	0    done
//	1    input or output failed: read or write error
//	2    usage: bad flag or argument, no text
//	3    broken input: truncated, wrong magic, missing shard, NaN or infinity in weights or activations
//	4    not supported: an architecture, a key, a tensor or a tokenizer that the evaluator does not know; no tokenizer
//	5    refused: text too short or not suitable for the model, models with different vocabularies
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
//	ggeval task hellaswag model-F16.gguf model-Q4_K_M.gguf -f hellaswag_val_full.txt --tasks 0
//	ggeval score model-Q4_K_M.gguf -f requests.jsonl -o answers.jsonl
//	ggeval serve model-Q4_K_M.gguf --address 127.0.0.1:8080
//	ggeval embed bge-small-Q8_0.gguf --base models/bge-small-en-v1.5 -f sentences.txt
package main
