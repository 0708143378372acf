package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/text/pyjson"
)

// list asks the hub for the commit of a revision and for its files. Source: the hub's documentation of its API,
// /api/models/{repo_id}/revision/{revision}.
func (r *remote) list() error {
	data, err := r.client.Get(r.ctx,
		r.opt.Endpoint+"/api/models/"+r.address.id+"/revision/"+url.PathEscape(r.address.revision), maxListing, nil)
	if err != nil {
		return r.denied(err)
	}
	return r.parseListing(data)
}

// parseListing reads the hub's answer.
func (r *remote) parseListing(data []byte) error {
	broken := func(format string, args ...any) error {
		return fault.Errorf(fault.Broken, "the hub's answer about %s: %s", r.address.id, fmt.Sprintf(format, args...))
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return broken("%v", err)
	}
	o, _ := v.(*pyjson.Object)
	if r.commit, _ = o.Get("sha").(string); !hubRevision.MatchString(r.commit) || strings.Contains(r.commit, "/") {
		return broken("sha is %s, want the hash of a commit", pyjson.Describe(o.Get("sha")))
	}
	siblings, ok := o.Get("siblings").([]any)
	if !ok || len(siblings) > maxFiles {
		return broken("siblings is %s, want a list of at most %d files", pyjson.Describe(o.Get("siblings")), maxFiles)
	}
	for _, s := range siblings {
		file, _ := s.(*pyjson.Object)
		name, ok := file.Get("rfilename").(string)
		if !ok || name == "." || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
			return broken("rfilename is %s, want the name of a file", pyjson.Describe(file.Get("rfilename")))
		}
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return nil
}

// listObjects lists the objects in the S3 folder.
func (r *remote) listObjects() error {
	list, err := r.objects.List(r.ctx, r.address.folder, maxFiles)
	if err == nil && len(list) == 0 {
		err = fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist), "%s: no objects there", r.address.folder)
	}
	for _, o := range list {
		r.names = append(r.names, o.Name)
		if isSide(o.Name) {
			r.sides = append(r.sides, fmt.Sprintf("%s: %d bytes, %s", o.Name, o.Bytes, o.Tag))
		}
	}
	if err != nil {
		return err
	}
	return r.objectsBeside()
}

// maskFile is the file of a DFlash draft with an embedding of the mask token.
const maskFile = "mask_embedding.pt"

// sidePatterns match the side files (configurations, tokenizers, cards); in folders, configurations of further modules
// and chat templates only.
var sidePatterns = []string{"LICENSE*", "*.json", "*.md", "*.txt", "*.model", "*.tiktoken", "*.jinja", "*/config.json",
	"helper/shim.py", maskFile, "*/" + safetensors.IndexName, "*/" + diffusersIndex + "*.json", "additional_chat_templates/*.jinja"}

// isSide reports whether a file is fetched before the weights.
func isSide(name string) bool {
	return slices.ContainsFunc(sidePatterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// fetchListed fetches the side files that the hub has listed.
func (r *remote) fetchListed(folder string) error {
	var names []string
	for _, name := range r.names {
		if isSide(name) {
			names = append(names, name)
		}
	}
	if len(names) > maxSideFiles {
		return fault.Errorf(fault.Unsupported, "%s: %d side files, want at most %d",
			cmp.Or(r.address.id, r.address.folder.String()), len(names), maxSideFiles)
	}
	return r.fetchAll(folder, names, false)
}

// sideFiles are the side files to request from a server without a listing.
var sideFiles = []string{
	"config.json", "params.json", "generation_config.json", "README.md", "modules.json", "hf_quant_config.json",
	"hadamard_packing.json",
	"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "merges.txt", "vocab.txt",
	"spiece.model", "sentencepiece.bpe.model", "rwkv_vocab_v20230424.txt", "tekken.json", "qwen.tiktoken",
	"hy.tiktoken", "tiktoken.model",
	"chat_template.jinja", "chat_template.json", "preprocessor_config.json", "processor_config.json",
	"embedding_config.json", "decision_config.json", "joint_head_config.json", "helper/shim.py", maskFile,
	"speech_tokenizer/config.json", safetensors.IndexName, pickleIndex, PipelineFile, diffusersIndex + ".json",
}

// probe requests the files that a model may have from a server without a listing.
func (r *remote) probe(folder string) error {
	if err := r.fetchAll(folder, sideFiles, true); err != nil {
		return err
	}
	if err := r.probeBeside(folder); err != nil {
		return err
	}
	if data, err := disk.ReadFile(filepath.Join(folder, "modules.json")); err == nil {
		var more []string
		v, _ := pyjson.Parse(data) // its reader reports errors
		modules, _ := v.([]any)
		for _, m := range modules[:min(len(modules), maxSideFiles)] {
			if o, ok := m.(*pyjson.Object); ok {
				if dir, _ := o.Get("path").(string); dir != "" && fs.ValidPath(dir) &&
					filepath.IsLocal(filepath.FromSlash(dir)) {
					more = append(more, dir+"/config.json")
				}
			}
		}
		if err := r.fetchAll(folder, more, true); err != nil {
			return err
		}
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}
	if err := r.probeDiffusers(folder, has); err != nil {
		return err
	}
	if has(safetensors.IndexName) {
		return nil // the index names the weights
	}
	if err := r.probeWeights(singleSafetensors, "consolidated.safetensors"); err != nil ||
		slices.Contains(r.names, singleSafetensors) {
		return err
	}
	for _, n := range pickleNames {
		if n.Index != "" && has(n.Index) {
			return nil
		}
		if err := r.probeWeights(n.Prefix + n.Suffix); err != nil {
			return err
		}
	}
	return nil
}

// probeDiffusers requests what a model of the diffusers library has: a folder of a pipeline, or such a folder alone.
func (r *remote) probeDiffusers(folder string, has func(name string) bool) error {
	folders := []string{""}
	if has(PipelineFile) {
		folders = PipelineFolders
	}
	for _, in := range folders {
		index, config := path.Join(in, diffusersIndex+".json"), path.Join(in, "config.json")
		if in != "" {
			if err := r.fetchAll(folder, []string{index, config}, true); err != nil {
				return err
			}
		}
		if has(config) && !has(index) {
			if err := r.probeWeights(path.Join(in, diffusersName+".safetensors")); err != nil {
				return err
			}
		}
	}
	return nil
}

// singleSafetensors is the name of unsharded weights.
const singleSafetensors = "model.safetensors"

// probeWeights notes which of the files the server has.
func (r *remote) probeWeights(names ...string) error {
	for _, name := range names {
		f, err := r.client.Open(r.ctx, r.url(name), false)
		switch {
		case err == nil:
			f.Close()
			r.names = append(r.names, name)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// fetchAll writes files into a folder. If optional, those that are missing are skipped.
func (r *remote) fetchAll(folder string, names []string, optional bool) error {
	group, ctx := errgroup.WithContext(r.ctx)
	group.SetLimit(8)
	for _, name := range names {
		group.Go(func() error {
			most := limit(name)
			if base := path.Base(name); base == safetensors.IndexName || base == pickleIndex ||
				strings.HasPrefix(base, diffusersIndex) {
				most = maxIndexBytes
			}
			data, err := r.client.Get(ctx, r.url(name), most, r.left)
			if optional && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return r.denied(err)
			}
			to := filepath.Join(folder, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o600)
		})
	}
	return group.Wait()
}
