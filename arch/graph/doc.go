// Package graph is the vocabulary in which an architecture declares what a file of it computes: plain values, composed
// of parts. The package knows no architecture, opens no file and computes no activations.
//
// A Model is the steps of one layer, with an embedding before them and a head after them. A step changes the residual
// stream; a part computes what a step adds to it: attention, a recurrent mixer, a feed-forward network, experts. Order
// is the order of steps, so pre-norm, post-norm, sandwich norms and parallel branches are arrangements of Residual.
// Layers of different kinds are different values, and Choose has the layers of each:
//
//	local := graph.Attention{Steps: []graph.HeadStep{graph.RoPE{}}, Window: graph.Window{Tokens: "n_swa"}}
//	global := graph.Attention{}
//	mixer := graph.Choose{{In: graph.Sliding{N: 4}, Then: local}, {In: graph.Every{}, Then: global}}
//
// Sizes and factors are expressions of package expr over the metadata of the file: "@attention.key_length or n_embd /
// n_head". Names without a mark are rows of the model's Dims, or of Common.
//
// Packages that read a Model:
//
//	arch     declares one for each architecture, next to its classes, keys and tensors
//	eval     has one forward and one backward pass for each type of part and step
//	memory   has one rule for each type: what a part caches, which results are alive while it runs
//	verify   compares tensors and keys of a file with those that parts declare
//	quantize compares its roles, which it finds by name, with the declared ones
//
// Declare returns what a Model declares for one file: tensors with their dimensions and roles, caches and states. Keys
// returns the keys that a Model may read. A file with a key or tensor that its Model neither declares nor lists as
// Unread may compute something else: evaluators refuse it, as they refuse a type of part that they do not know.
//
// Metadata come from untrusted files. Expressions saturate, sizes have limits, the number of layers is bounded by the
// tensors of the file and by what llama.cpp loads; Declare reports the rest as an error of kind fault.Broken. Models
// come from programs: Check finds expressions that do not parse, unknown names and names that refer to themselves, and
// Declare begins with it.
//
// A new architecture is a value; arch/parts has the arrangements that several share. What no part computes yet becomes
// a part with a type of its own, even if one architecture uses it, rather than a field of an existing part:
//
//  1. a file of this package with the type, its method Declare (tensors, cache or state) and, for keys that Declare or
//     evaluators read beyond the fields, its method asks;
//  2. its operation in eval, or evaluators refuse it by its name;
//  3. its results in memory, unless the general rule fits.
//
// A new step, or a new way to make scores, queries or expert weights, is added likewise: its type, and its case in the
// switch over its kind (Decl.step, Decl.headSteps, Decl.scoreSteps, Decl.outSteps, MoE.Declare, Scope.In).
package graph
