package table

import "ggforge/arch/config"

// Special is a property that few tables have: one of the types below.
type Special interface{ special() }

// Find returns the property of type S of a table; ok is false if it has none.
func Find[S Special](a *Arch) (s S, ok bool) {
	for _, p := range a.Special {
		if s, ok = p.(S); ok {
			return s, true
		}
	}
	return s, false
}

// Has reports whether a table has a property of type S.
func Has[S Special](a *Arch) bool {
	_, ok := Find[S](a)
	return ok
}

// Draft marks draft models (speculative decoding), which need the configuration and the tokenizer of their target
// model, see config.Facts.
type Draft struct {
	// MaskToken returns the id of the mask token, which is the last key of the file; nil for models without one.
	MaskToken func(*config.View) (n int64, ok bool, err error)
	// OwnMask: an embedding of the mask token may be in a file next to the weights.
	OwnMask bool
}

// DSpark is the class of the block draft model that checkpoints may contain next to the model.
type DSpark string

// MXFP4 is for architectures whose file names contain MXFP4 for experts of that type in every output type, not only in
// unquantized ones. First puts experts that are stored in MXFP4 before all other tensors, layer by layer in the order of
// their names in the checkpoint.
type MXFP4 struct{ First bool }

// LastOfNVFP4 is a name prefix of tensors that come last in models with NVFP4 weights, where the reference renames
// them.
type LastOfNVFP4 string

// Folder is the folder of the model's weights, if it is not the checkpoint's directory.
type Folder string

// ExtraFile is a file of weights next to the model's, a safetensors file. Its tensors come after the model's, in the
// order of their data.
type ExtraFile struct {
	File   string
	Prefix string // added to the tensor names, for the rows
	// Generated: the reference computes output tensors from the file's; output type auto therefore ignores their stored
	// types.
	Generated bool
}

// EncoderNames is for architectures whose rows are matched with tensor names of vision and audio encoders, too; in all
// others such tensors are dropped.
type EncoderNames struct{}

// SuppressZeroRows suppresses added tokens whose embedding row is zero: their ids go into config.Facts.Suppress.
type SuppressZeroRows struct{}

func (Draft) special()            {}
func (DSpark) special()           {}
func (MXFP4) special()            {}
func (LastOfNVFP4) special()      {}
func (Folder) special()           {}
func (ExtraFile) special()        {}
func (EncoderNames) special()     {}
func (SuppressZeroRows) special() {}

// headerLast returns the rows after the tokenizer's.
func (a *Arch) headerLast() []Row {
	d, _ := Find[Draft](a)
	if d.MaskToken == nil {
		return nil
	}
	return []Row{{Key: "tokenizer.ggml.mask_token_id", Derive: Uint32By(d.MaskToken)}}
}
