package convert

import (
	"ggforge/arch/config"
	"ggforge/checkpoint"
	"ggforge/fault"
)

// Options of a conversion. The zero value gives the output of llama.cpp's converter (called the reference) without
// options.
type Options struct {
	Type OutType // type of the weights; default Auto
	// Class is the Hugging Face class to convert the model as; "" for the one in config.json.
	Class     string
	ModelName string // instead of the name found in the model card and directory
	Pre       string // tokenizer.ggml.pre of byte-level BPE, instead of the name that the check text gives
	// EmbedTokenizer writes tokenizer.json as tokenizer.huggingface.json, which the
	// reference never does.
	EmbedTokenizer bool
	// Override is a JSON file of general.* keys that replace those found in the directory; "" for none.
	Override string
	// VocabOnly writes metadata and vocabulary only; the checkpoint need not have weights.
	VocabOnly bool
	// ConfigOnly reads the configuration, and the tokenizer if there is one, to find out whether the model is
	// supported. Such a job cannot be written.
	ConfigOnly bool
	BigEndian  bool
	Split      Split
	// FuseQKV and FuseGateUp merge the query, key and value projections, and the gate and up projections of experts,
	// into one tensor each.
	FuseQKV, FuseGateUp bool
	// Dense includes the dense modules of a sentence-transformers embedding model.
	Dense bool
	// NextN decides whether MTP (NextN) layers are in the model's file, left out, or in a separate file.
	NextN config.NextN
	// DSpark converts the block draft model (DSpark) of the checkpoint instead of the model.
	DSpark bool
	// MMProj converts the vision or audio encoder with its projector (mmproj) instead of the language model.
	MMProj bool
	// Target is the directory of the target model of a draft model, which shares its tokenizer and hyperparameters; ""
	// for none.
	Target string
	// Mistral reads a checkpoint in Mistral's own format: params.json,
	// consolidated*.safetensors and tekken.json.
	Mistral bool
	// OutsideLinks follows symbolic links that leave the checkpoint's directory. Without it they are errors, except in
	// the Hugging Face hub's cache.
	OutsideLinks bool
	// Remote has the options for models on a server.
	Remote checkpoint.Remote
	// Float8AsQ8 writes matrices stored as FP8 as Q8_0, whatever Type is.
	Float8AsQ8 bool
	// Base is the directory of an adapter's base model, whose configuration is read. BaseID is its ID, ORG/NAME,
	// instead; without both, adapter_config.json names it. A base model with an ID is read from HubCache, the folder of
	// models in the hub's cache, and BaseID from the hub if it is not there.
	Base, BaseID, HubCache string
	// OwnType makes Auto the type of an adapter's first 16-bit matrix. Without it Auto is F32 for adapters, as in the
	// reference.
	OwnType bool
	// Merge lists the adapters to add to the weights.
	Merge []Merge
	// Reference writes the reference's bytes even where they are broken: see docs/deviations.md.
	Reference bool
}

// check refuses options that contradict each other.
func (o Options) check() error {
	if o.DSpark && (o.NextN != config.WithNextN || o.Mistral) {
		return fault.Errorf(fault.Usage,
			"drafts of blocks of tokens have no place for layers that predict further tokens, nor for Mistral's own format")
	}
	if !o.MMProj {
		return nil
	}
	for _, r := range []struct {
		set  bool
		what string
	}{
		{o.DSpark, "drafts"}, {o.VocabOnly, "a vocabulary alone"}, {o.EmbedTokenizer, "a tokenizer"},
		{o.Pre != "", "a pre-tokenizer"}, {o.Dense, "dense modules"},
		{o.NextN != config.WithNextN, "layers that predict further tokens"},
	} {
		if r.set {
			return fault.Errorf(fault.Usage, "a vision or audio encoder has no place for %s", r.what)
		}
	}
	return nil
}
