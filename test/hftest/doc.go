// Package hftest makes small Hugging Face checkpoints in the real formats: config.json, tokenizer files and weights as
// in published models of an architecture, with few and short rows. Tests convert them and compare the result with the
// reference's (convert/testdata/arch); `go run ./test/hftest/mk NAME DIR` writes one for inspection.
//
// # How to write a spec
//
// One architecture is one Spec, in a file spec_<family>.go, whose init calls add:
//
//	func init() {
//		add(Spec{
//			Name:      "llama",        // also the directory, from which general.name comes
//			Tokenizer: "spm",          // see tokenizers in tokenizer.go
//			Config: `{                 // as published, with small numbers; $bos, $eos, $vocab … are
//				"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": $vocab, …
//			}`,                        // the tokenizer's values; row lengths are multiples of 32
//			Tensors: `
//				bid = num_hidden_layers                       # {bid} counts from 0 up to this
//				hd  = hidden_size / num_attention_heads       # a name for use below
//				model.embed_tokens.weight                        | vocab_size, hidden_size
//				lm_head.weight                                   | vocab_size, hidden_size | if !opt(tie_word_embeddings)
//				model.layers.{bid}.self_attn.{k,v}_proj.weight   | num_key_value_heads*hd, hidden_size
//				model.layers.{bid}.self_attn.{k,v}_proj.bias     | num_key_value_heads*hd  | if opt(attention_bias)
//				model.layers.{bid}.block_sparse_moe.gate.weight  | num_local_experts, hidden_size | as F32
//			`,
//			Variants: []Variant{{Name: "tied", Set: `{"tie_word_embeddings": true}`}},
//		})
//	}
//
// A row of the table is a name, its dimensions as in the checkpoint, and clauses:
//
//	{x}       x counts from 0 up to the value of "x = …"; several of them nest
//	{a,b}     one tensor for each alternative; {,a} has an empty one
//	if EXPR   only where EXPR is true; it may use bid and other counters
//	as TYPE   element type instead of the variant's, a name of the safetensors format
//	fill HOW  values: see fills in values.go, some take numbers; the default suits weights, norms, biases
//
// Expressions have Go's syntax. Names are keys of config.json, with text_config merged into the root; nested ones are
// written a.b, elements of lists a[bid]. Numbers, strings ("full_attention"), true and false can be compared. opt(key)
// is 0 where the key is absent or null; any other use of such a key is an error. Quotients are not rounded: write
// floor(x) where a dimension needs it. has(list, n) reports whether a list has a number, len(list) is its length,
// text[n] is a character.
//
// Every spec is made in the variants of Standard and in its own; a variant's Set is merged into config.json, null
// removes a key. If transformers misreads the config.json, set Spec.RawConfig; if the reference has no result at all,
// give the reason in Spec.NoReference.
//
// `make golden SPEC=NAME` then writes convert/testdata/arch/NAME.txt from the
// reference's output, with which go test ./convert compares ours. Without a reference
// the golden is our own: go test ./convert -run TestArchitectures/NAME -golden.
// An architecture without a spec fails that test; the test leaves out a spec whose class has no architecture yet.
//
// # Values
//
// The bytes are a function of the seed, the tensor's name and its shape (gen.Bell
// of "seed/name/shape"), the same on every platform and in every release.
package hftest
