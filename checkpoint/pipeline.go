package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/disk"
)

// A pipeline of the diffusers library has its models in folders, and their tokenizers in folders next to them:
//
//	model_index.json
//	text_encoder/    config.json  model.safetensors      tokenizer/    tokenizer_config.json …
//	text_encoder_2/  config.json  model.safetensors      tokenizer_2/  spiece.model …
//	                                                     processor/    preprocessor_config.json …
//
// A text encoder is opened as a model with the files of its folder and, where it has none of a kind, those of that kind
// from the first folder next to it that has some. Source: DiffusionPipeline.save_pretrained of diffusers, and its
// published pipelines.

// PipelineFile lists the folders of a pipeline.
const PipelineFile = "model_index.json"

// encoderFolder is the name of a text encoder's folder.
var encoderFolder = regexp.MustCompile(`^text_encoder(_[2-9])?$`)

func isTextEncoder(folder string) bool { return encoderFolder.MatchString(folder) }

// besideFolders returns the names of the folders next to a text encoder in which its files may be.
func besideFolders(encoder string) []string {
	suffix := strings.TrimPrefix(encoder, "text_encoder")
	return []string{"tokenizer" + suffix, "processor" + suffix}
}

// besideKinds are the kinds of files that a text encoder may have next to it. Those of one kind belong together, and
// come from one folder.
var besideKinds = [][]string{
	{"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
		"vocab.json", "merges.txt", "vocab.txt", "spiece.model", "sentencepiece.bpe.model", "tekken.json",
		"chat_template.jinja", "chat_template.json"},
	{"preprocessor_config.json", "processor_config.json"},
}

// besideOf returns the files that a text encoder lacks and that are next to it, with the folders that have them; has
// reports the files of a folder, "" for the encoder's own.
func besideOf(encoder string, has func(folder string) ([]string, error)) (map[string]string, error) {
	found := map[string]string{}
	lists := map[string][]string{}
	folders := append([]string{""}, besideFolders(encoder)...)
	for _, folder := range folders {
		list, err := has(folder)
		if err != nil {
			return nil, err
		}
		lists[folder] = list
	}
	for _, kind := range besideKinds {
		in := func(name string) bool { return slices.Contains(kind, name) }
		i := slices.IndexFunc(folders, func(folder string) bool { return slices.ContainsFunc(lists[folder], in) })
		if i <= 0 {
			continue
		}
		for _, name := range lists[folders[i]] {
			if in(name) {
				found[name] = folders[i]
			}
		}
	}
	return found, nil
}

// localBeside is besideOf for a directory, nil if it is not a text encoder of a pipeline. Folders that are links are not
// looked at.
func localBeside(dir string) (map[string]string, error) {
	around, encoder := filepath.Split(dir)
	if !isTextEncoder(encoder) {
		return nil, nil
	}
	if st, err := os.Stat(filepath.Join(around, PipelineFile)); err != nil || !st.Mode().IsRegular() {
		return nil, nil
	}
	return besideOf(encoder, func(folder string) (names []string, err error) {
		at := dir
		if folder != "" {
			at = filepath.Join(around, folder)
			if st, err := os.Lstat(at); err != nil || !st.IsDir() {
				return nil, nil
			}
		}
		list, err := disk.ReadDir(at)
		for _, e := range list {
			if !e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return names, err
	})
}

// TokenizerBeside returns the name of the folder in which the tokenizer of a text encoder is looked for besides the
// encoder's own, "" for another model.
func (d *Dir) TokenizerBeside() string {
	folder := filepath.Base(d.real)
	if d.remote != nil {
		folder = d.remote.address.component
		if folder == "" && d.remote.address.base != nil {
			folder = path.Base(d.remote.address.base.Path)
		}
	}
	if !isTextEncoder(folder) {
		return ""
	}
	return besideFolders(folder)[0]
}

// inPipeline restricts the files of a model of the hub to those of the text encoder that the address names, if any, and
// those next to it.
func (r *remote) inPipeline() error {
	encoder := r.address.component
	if encoder == "" {
		return nil
	}
	all := r.names
	in := func(folder string) (names []string) {
		for _, name := range all {
			if rest, ok := strings.CutPrefix(name, folder+"/"); ok {
				names = append(names, rest)
			}
		}
		return names
	}
	if r.names = in(encoder); len(r.names) == 0 {
		return fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist), "%s: has no folder %s", r.address.id, encoder)
	}
	if !slices.Contains(all, PipelineFile) {
		return nil
	}
	beside, err := besideOf(encoder, func(folder string) ([]string, error) {
		if folder == "" {
			return r.names, nil
		}
		return in(folder), nil
	})
	r.take(beside, func(name string) string { return r.inHub(name) })
	return err
}

// take adds the files next to a text encoder to those of its folder.
func (r *remote) take(beside map[string]string, address func(name string) string) {
	r.at = map[string]string{}
	for name, folder := range beside {
		r.names = append(r.names, name)
		r.at[name] = address(path.Join(folder, name))
	}
	slices.Sort(r.names)
}

// objectsBeside adds the files next to the folder of a text encoder in S3.
func (r *remote) objectsBeside() error {
	around, encoder, ok := cutLast(strings.TrimSuffix(r.address.folder.Key, "/"))
	if !ok || !isTextEncoder(encoder) {
		return nil
	}
	around += "/"
	list := func(folder string) ([]bucket.Object, error) {
		return r.objects.List(r.ctx, bucket.Name{Bucket: r.address.folder.Bucket, Key: around + folder}, maxFiles)
	}
	index := bucket.Name{Bucket: r.address.folder.Bucket, Key: around + PipelineFile}
	if ok, err := r.there(index.URL()); !ok || err != nil {
		return err
	}
	notes := map[string]string{}
	beside, err := besideOf(encoder, func(folder string) (names []string, err error) {
		if folder == "" {
			return r.names, nil
		}
		objects, err := list(folder)
		for _, o := range objects {
			names = append(names, o.Name)
			notes[path.Join(folder, o.Name)] = fmt.Sprintf("%s: %d bytes, %s", o.Name, o.Bytes, o.Tag)
		}
		return names, err
	})
	r.take(beside, func(name string) string {
		r.sides = append(r.sides, notes[name])
		return bucket.Name{Bucket: r.address.folder.Bucket, Key: around + name}.URL()
	})
	return err
}

// there reports whether a server has a file.
func (r *remote) there(address string) (bool, error) {
	f, err := r.client.Open(r.ctx, address, false)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	f.Close()
	return true, nil
}

// probeBeside fetches the files next to the folder of a text encoder on a server without a listing.
func (r *remote) probeBeside(to string) error {
	around, encoder, ok := cutLast(strings.TrimSuffix(r.address.base.Path, "/"))
	if !ok || !isTextEncoder(encoder) {
		return nil
	}
	address := func(name string) string {
		u := url.URL{Scheme: r.address.base.Scheme, Host: r.address.base.Host, Path: around + "/" + name}
		return u.String()
	}
	if ok, err := r.there(address(PipelineFile)); !ok || err != nil {
		return err
	}
	r.at = map[string]string{}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(to, name))
		return err == nil
	}
	for _, kind := range besideKinds {
		for _, folder := range besideFolders(encoder) {
			if slices.ContainsFunc(kind, has) {
				break
			}
			for _, name := range kind {
				r.at[name] = address(path.Join(folder, name))
			}
			if err := r.fetchAll(to, kind, true); err != nil {
				return err
			}
		}
	}
	return nil
}
