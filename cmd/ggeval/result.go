package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	tool "ggforge/cmd/internal/cli"
	"ggforge/eval"
)

// number is a figure in JSON: null where it is not finite.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// textResult describes the text in a result.
type textResult struct {
	File   string `json:"text"`
	Tokens int    `json:"tokens"` // tokens of the whole text
	Chunk  int    `json:"chunk"`  // tokens of a chunk
	Chunks int    `json:"chunks"`
	Stride int    `json:"stride,omitempty"`
	// Predicted is the number of tokens that the figures cover.
	Predicted int `json:"predicted,omitempty"`
}

// pairsResult is textResult for verbs that run encoder-decoders, too.
type pairsResult struct {
	textResult
	Source string `json:"source,omitempty"` // the file of the sources; "" if the text has none
	// Conversations is how many the text has, 0 if it is another one.
	Conversations int `json:"conversations,omitempty"`
	// LossOf says whose tokens of conversations are predicted: assistant or all.
	LossOf string `json:"loss_of,omitempty"`
}

// cacheResult is the KV cache of a model; nil for that of F32.
type cacheResult struct {
	Keys   string `json:"keys"`
	Values string `json:"values"`
	// Rotation: heads of a multiple of 64 values are rotated before they are quantized.
	Rotation bool `json:"rotation"`
}

// String is "q8_0:q4_0", or "q8_0" for both.
func (c *cacheResult) String() string {
	s := c.Keys
	if c.Values != c.Keys {
		s += ":" + c.Values
	}
	if !c.Rotation {
		s += " without rotation"
	}
	return s
}

// named returns the end of a model's name about its cache.
func (c *cacheResult) named() string {
	if c == nil {
		return ""
	}
	return " with a cache of " + c.String()
}

func cacheOf(c eval.Cache) *cacheResult {
	if !cached(c) {
		return nil
	}
	return &cacheResult{strings.ToLower(c.Keys.String()), strings.ToLower(c.Values.String()), !c.Unrotated}
}

// costResult is the time and memory of a run.
type costResult struct {
	Seconds float64 `json:"seconds"`
	// Speed counts each token that goes through a model.
	Speed float64 `json:"tokens_per_second"`
	Peak  int64   `json:"peak_memory_bytes"`
}

func endCost(c *tool.Cost, tokens int) costResult {
	seconds, peak := c.End()
	return costResult{seconds, float64(tokens) / seconds, peak}
}

func (c costResult) String() string {
	return fmt.Sprintf("%.2f s, %.0f tokens/s, peak memory %s", c.Seconds, c.Speed, tool.Bytes(c.Peak))
}
