package table

import (
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
)

// Rename replaces a prefix of tensor names of the checkpoint before rows are matched.
type Rename struct {
	Prefix, With string // both may have a {bid}
	If           Cond   // nil for always
	// AfterModel: With has a {bid}, the number of model layers plus the number after Prefix, if there is one.
	AfterModel bool
	// Number computes the {bid} of With from the number after Prefix; with AfterModel from 0 if there is none.
	Number func(c *config.View, n int64) (int64, error)
}

// Drop drops tensors of the checkpoint by a prefix of their names, after Rename; Why is the reason in messages.
// AfterModel: the prefix is followed by the number of a layer after the model's.
type Drop struct {
	Prefix, Why string
	Suffix      string // in addition to the prefix
	If          Cond
	AfterModel  bool
}

// Silent is the reason of drops that are not reported: the tensors have no effect.
const Silent = ""

// OtherPart is the reason for tensors of a multimodal model outside its language model.
const OtherPart = "of vision and audio encoders"

// canonical returns the name in the form of the rows; drop reports whether the tensor is dropped.
func (a *Arch) canonical(c *config.View, name string, blocks int64) (canonical, why string, drop bool, err error) {
	l := Layer{c, -1}
	if a.Encoder == nil {
		// language models in multimodal models have a prefix
		name = strings.ReplaceAll(name, "language_model.", "")
	}
	stored := name
	if slices.Contains(a.Body.Classes, c.Class) && !strings.HasPrefix(name, a.Body.Prefix) {
		name = a.Body.Prefix + name
	}
	for _, r := range a.Rename {
		if after, bid, ok := r.cut(name); ok {
			if r.If != nil {
				if ok, err = r.If(Layer{c, bid}); err != nil {
					return "", "", false, err
				}
			}
			if ok {
				if name, err = r.rename(c, after, bid); err != nil {
					return "", "", false, err
				}
				break
			}
		}
	}
	if drop, err = a.NextN.excludes(c, stored, name); err != nil || drop {
		return name, Silent, drop, err
	}
	for _, d := range a.Drop {
		rest, ok := strings.CutPrefix(name, d.Prefix)
		ok = ok && strings.HasSuffix(name, d.Suffix)
		if d.AfterModel && ok {
			rest, _, _ = strings.Cut(rest, ".")
			ok = isNumber(rest) && !IsLayerBelow(rest, blocks)
		}
		if !ok {
			continue
		}
		if d.If != nil {
			if ok, err = d.If(l); err != nil {
				return "", "", false, err
			}
		}
		if ok {
			return name, d.Why, true, nil
		}
	}
	for _, suffix := range buffers {
		if strings.HasSuffix(name, suffix) {
			return name, Silent, true, nil
		}
	}
	if a.Encoder == nil && !Has[EncoderNames](a) && isOtherPart(name) {
		return name, OtherPart, true, nil
	}
	return name, "", false, nil
}

// cut returns the rest of a name after the prefix, and the number at the prefix's {bid}, -1 for none.
func (r Rename) cut(name string) (after string, bid int64, ok bool) {
	first, second, numbered := strings.Cut(r.Prefix, "{bid}")
	after, ok = strings.CutPrefix(name, first)
	if !ok || !numbered {
		return after, -1, ok
	}
	number, _, _ := strings.Cut(after, ".")
	if !isNumber(number) {
		return "", -1, false
	}
	bid, _ = strconv.ParseInt(number, 10, 64)
	after, ok = strings.CutPrefix(after[len(number):], second)
	return after, bid, ok
}

// rename returns the new name of a tensor; after is the rest of its name after the prefix, bid the prefix's {bid}.
func (r Rename) rename(c *config.View, after string, bid int64) (string, error) {
	var err error
	number, rest, numbered := strings.Cut(after, ".")
	numbered = numbered && isNumber(number)
	switch n, _ := strconv.ParseInt(number, 10, 64); {
	case r.Number != nil && numbered:
		bid, after = n, rest
		bid, err = r.Number(c, bid)
	case r.Number != nil && r.AfterModel:
		bid, err = r.Number(c, 0)
	case r.AfterModel:
		if bid, err = c.BlockCount(); numbered {
			bid, after = bid+n, rest
		}
	}
	return strings.ReplaceAll(r.With, "{bid}", strconv.FormatInt(bid, 10)) + after, err
}

// buffers are suffixes of buffers, which runtimes compute.
var buffers = []string{".attention.masked_bias", ".attention.bias", ".rotary_emb.inv_freq"}

// otherParts are names of tensors outside the language model. Source: the tensors that the reference's TextModel
// skips.
var otherParts = struct{ prefixes, anywhere []string }{
	[]string{"mlp", "vit.", "vpm.", "siglip2.", "conformer.", "connector.", "merger.", "resampler.", "sound_encoder.",
		"sound_projection.", "speech_embeddings."},
	[]string{"visual.", "vision.", "audio.", "talker.", "vision_", "audio_", "token2wav.", "code2wav.", "projector.",
		"pre_mm_projector_norm",
		"image_newline", "view_seperator", "patch_embed", "patch_merger.", "patch_merge_mlp."},
}

func isOtherPart(name string) bool {
	name = strings.TrimPrefix(name, "model.")
	return slices.ContainsFunc(otherParts.prefixes, func(s string) bool { return strings.HasPrefix(name, s) }) ||
		slices.ContainsFunc(otherParts.anywhere, func(s string) bool { return strings.Contains(name, s) })
}
