package config

import (
	"io/fs"
	"strconv"

	"ggforge/fault"
	"ggforge/tokenizer"
)

// ImageBreak is the token that ends a row of image patches in Mistral's models.
const ImageBreak = "[IMG_BREAK]"

// readBreakToken reads the id of ImageBreak from tokenizer_config.json or tokenizer.json. Source: LlavaVisionModel of
// the reference.
func readBreakToken(files Files, _ *View, f *Facts) error {
	var config struct {
		Added map[string]struct{ Content any } `json:"added_tokens_decoder"`
	}
	if _, err := readJSON(files, "tokenizer_config.json", &config); err != nil {
		return err
	}
	for id, t := range config.Added {
		if t.Content != ImageBreak {
			continue
		}
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil || n < 0 {
			return fault.Errorf(fault.Broken, "tokenizer_config.json: token %q: id %q, want a number", ImageBreak, id)
		}
		f.Tokens = map[string]int64{ImageBreak: n}
		return nil
	}
	return readAddedBreak(files, f)
}

// readAddedBreak reads the id of ImageBreak from the added tokens of tokenizer.json.
func readAddedBreak(files Files, f *Facts) error {
	var tok struct {
		Added []struct {
			ID      int64
			Content string
		} `json:"added_tokens"`
	}
	if _, err := readJSON(files, "tokenizer.json", &tok); err != nil {
		return err
	}
	for _, t := range tok.Added {
		if t.Content == ImageBreak && f.Tokens == nil {
			f.Tokens = map[string]int64{ImageBreak: t.ID}
		}
	}
	return nil
}

// readParamsBreak reads the id of ImageBreak from params.json, or from the tokenizer's files if params.json has a
// negative number. Source: LlavaVisionModel of the reference.
func readParamsBreak(files Files, v *View, f *Facts) error {
	const key = "image_break_token_id"
	n, err := v.Vision().Require(key)
	if err == nil && n == 0 {
		err = WrongType("vision_encoder."+key, "the id of a token", n)
	}
	if err != nil || n > 0 {
		f.Tokens = map[string]int64{ImageBreak: n}
		return v.Vision().withFile(err)
	}
	var tekken struct {
		Special []struct {
			Rank int64
			Text string `json:"token_str"`
		} `json:"special_tokens"`
	}
	if _, err := readJSON(files, "tekken.json", &tekken); err != nil {
		return err
	}
	f.Tokens = nil
	for _, t := range tekken.Special {
		if t.Text == ImageBreak {
			f.Tokens = map[string]int64{ImageBreak: t.Rank}
			return nil
		}
	}
	return readAddedBreak(files, f)
}

// TileMarks are the tokens between the slices of an image in MiniCPM-V 4.7, in the order of their rows in a GGUF file.
// Source: MiniCPMV4_7VisionModel of the reference.
var TileMarks = []string{"</image>", "<slice>", "</slice>", "\n"}

// readTileTokens reads the ids of TileMarks. Each mark must be encoded as one token.
func readTileTokens(files Files, _ *View, f *Facts) error {
	const name = "tokenizer.json"
	data, ok, err := readFile(files, name)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: %w (needed for the ids of the tokens between image slices)", name,
			fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	encoder, err := tokenizer.NewEncoder(data)
	if err != nil {
		return err
	}
	tokens := map[string]int64{}
	for _, mark := range TileMarks {
		ids, err := encoder.Encode(mark, false)
		if err == nil && len(ids) != 1 {
			err = fault.Errorf(fault.Broken, "%s: %q is %d tokens, want one", name, mark, len(ids))
		}
		if err != nil {
			return err
		}
		tokens[mark] = int64(ids[0])
	}
	f.Tokens = tokens
	return nil
}
