package runs

import (
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/model/limits"
)

// categoryCache is the heading of the flags about the KV cache.
const categoryCache = "KV cache"

// CacheFlags returns the flags of Input.Cache.
func CacheFlags(more ...tool.Flag) []tool.Flag {
	return tool.Group(categoryCache, append([]tool.Flag{
		{Name: "cache-type-k", Aliases: []string{"ctk"}, Value: tool.Text, Choices: limits.CacheTypeNames,
			Effect: tool.SetsBytes,
			Usage: "keep keys as `TYPE`, as llama.cpp does in its KV cache (default: f32; with --cache-type-v, f16): " +
				strings.Join(limits.CacheTypeNames(), ", ")},
		{Name: "cache-type-v", Aliases: []string{"ctv"}, Value: tool.Text, Choices: limits.CacheTypeNames,
			Effect: tool.SetsBytes, Usage: "keep values as `TYPE` (default: f32; with --cache-type-k, f16)"},
		{Name: "no-cache-rotation", Effect: tool.SetsBytes, With: append([]string{"cache-type-k", "cache-type-v"},
			names(more)...),
			Usage: "do not rotate keys and values before they are quantized: llama.cpp with LLAMA_ATTN_ROT_DISABLE=1"},
	}, more...)...)
}

// names returns the names of flags.
func names(flags []tool.Flag) (list []string) {
	for _, f := range flags {
		list = append(list, f.Name)
	}
	return list
}

// CacheTypesFlag returns --cache-types, for verbs that compare a model with itself.
func CacheTypesFlag() tool.Flag {
	return tool.Flag{Name: "cache-types", Value: tool.Text, Effect: tool.SetsBytes,
		Usage: "compare BASE with itself with caches of other types: a comma-separated `LIST` of TYPE, or of the types of " +
			"keys and values: q8_0,q8_0:q4_0. Its own cache is then F16"}
}

// parseCache reads CacheFlags, which a verb may lack.
func parseCache(cmd *cli.Command) (c eval.Cache, err error) {
	keys, values := cmd.String("cache-type-k"), cmd.String("cache-type-v")
	if keys != "" || values != "" {
		c = eval.F16Cache
	}
	if keys != "" {
		if c.Keys, err = limits.ParseCacheType(keys); err != nil {
			return c, fault.Errorf(fault.Usage, "--cache-type-k: %w", err)
		}
	}
	if values != "" {
		if c.Values, err = limits.ParseCacheType(values); err != nil {
			return c, fault.Errorf(fault.Usage, "--cache-type-v: %w", err)
		}
	}
	c.Unrotated = cmd.Bool("no-cache-rotation")
	return c, nil
}

// parseCacheTypes reads --cache-types.
func parseCacheTypes(cmd *cli.Command) (list []eval.Cache, err error) {
	text := cmd.String("cache-types")
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		c, err := eval.ParseCache(strings.TrimSpace(part))
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "--cache-types: %w", err)
		}
		c.Unrotated = cmd.Bool("no-cache-rotation")
		list = append(list, c)
	}
	return list, nil
}
