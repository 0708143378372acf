// Package installed finds models in the stores of Ollama and LM Studio on this machine: names with the scheme ollama://
// or lmstudio:// become paths of files, which any command can read. It writes nothing.
//
//	ollama://NAME[:TAG]                    OLLAMA/manifests/registry.ollama.ai/library/NAME/TAG  (TAG: latest)
//	ollama://NAMESPACE/MODEL[:TAG]         OLLAMA/manifests/registry.ollama.ai/NAMESPACE/MODEL/TAG
//	ollama://HOST/NAMESPACE/MODEL[:TAG]    OLLAMA/manifests/HOST/NAMESPACE/MODEL/TAG
//	             ...#projector             the encoder instead of the model; #adapter: the adapter
//	lmstudio://PUBLISHER/MODEL             the only model in LMSTUDIO/PUBLISHER/MODEL, or that folder: a checkpoint
//	lmstudio://PUBLISHER/MODEL/FILE.gguf   a file in it
//
// A manifest of Ollama is JSON with layers, each with a type, a size and a digest; the file of a layer is
// OLLAMA/blobs/sha256-DIGEST. A store is untrusted: names and digests are checked, so that no path leaves the store,
// and the file has to be a regular one with the size that the manifest states.
//
// Source: docs/import.md, docs/faq.md, types/model/name.go and manifest/ of ollama; lmstudio.js.
package installed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

const (
	ollamaScheme   = "ollama://"
	lmStudioScheme = "lmstudio://"

	// The parts that a name of Ollama may leave out.
	ollamaHost, ollamaNamespace, ollamaTag = "registry.ollama.ai", "library", "latest"
	// layerType is the beginning of a layer's type; after it comes what the file is.
	layerType = "application/vnd.ollama.image."

	maxManifest = 1 << 20 // bytes
	maxSettings = 1 << 20 // bytes of LM Studio's settings
	maxEntries  = 10_000  // of a folder
)

// Is reports whether a name is that of a model in a store.
func Is(name string) bool {
	return strings.HasPrefix(name, ollamaScheme) || strings.HasPrefix(name, lmStudioScheme)
}

// Stores are the folders with models, those to look in first at the beginning. Folders may be missing.
type Stores struct {
	Ollama   []string
	LMStudio []string
}

// Environment returns the stores of this user: OLLAMA_MODELS, or .ollama/models in the user's folder and in that of
// Ollama's service; and the folder that LM Studio's settings name, or models in its folder.
func Environment() Stores {
	var s Stores
	home, err := os.UserHomeDir()
	switch dir := os.Getenv("OLLAMA_MODELS"); {
	case dir != "":
		s.Ollama = []string{dir}
	default:
		if err == nil {
			s.Ollama = append(s.Ollama, filepath.Join(home, ".ollama", "models"))
		}
		if runtime.GOOS == "linux" {
			s.Ollama = append(s.Ollama, "/usr/share/ollama/.ollama/models")
		}
	}
	if err == nil {
		s.LMStudio = lmStudio(home)
	}
	return s
}

// lmStudio returns the folders in which LM Studio keeps models, for a user's folder.
func lmStudio(home string) (list []string) {
	dirs := []string{filepath.Join(home, ".lmstudio"), filepath.Join(home, ".cache", "lm-studio")}
	if data, err := readFile(filepath.Join(home, ".lmstudio-home-pointer"), maxSettings); err == nil {
		if dir := strings.TrimSpace(string(data)); filepath.IsAbs(dir) {
			dirs = slices.Insert(dirs, 0, dir)
		}
	}
	for _, dir := range dirs {
		var settings struct{ DownloadsFolder string }
		data, err := readFile(filepath.Join(dir, "settings.json"), maxSettings)
		if err == nil && json.Unmarshal(data, &settings) == nil && filepath.IsAbs(settings.DownloadsFolder) {
			list = append(list, settings.DownloadsFolder)
		}
		list = append(list, filepath.Join(dir, "models"))
	}
	return list
}

// Find returns the path of the model with that name, see Is. A name without a model in any store is an error of kind
// fault.Usage that is also fs.ErrNotExist, a defective manifest one of kind fault.Broken.
func (s Stores) Find(name string) (string, error) {
	find, dirs := s.lmStudioModel, s.LMStudio
	if strings.HasPrefix(name, ollamaScheme) {
		find, dirs = s.ollamaModel, s.Ollama
	}
	for _, dir := range dirs {
		file, err := find(dir, name)
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.Broken) {
			return file, err
		}
	}
	return "", fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist), "%s: there is no such model in %s", name,
		cmp.Or(strings.Join(dirs, " or "), "any folder"))
}

// Parts of names. Ollama's hosts may have a port.
var (
	namePart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$`)
	hostPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}(:[0-9]{1,5})?$`)
)

// ollamaName is a name of Ollama with all parts, and the kind of layer that is meant.
type ollamaName struct{ host, namespace, model, tag, layer string }

func parseOllama(name string) (n ollamaName, err error) {
	rest, layer, marked := strings.Cut(strings.TrimPrefix(name, ollamaScheme), "#")
	parts := strings.Split(rest, "/")
	last := len(parts) - 1
	model, tag, tagged := strings.Cut(parts[last], ":")
	n = ollamaName{ollamaHost, ollamaNamespace, model, ollamaTag, "model"}
	if tagged {
		n.tag = tag
	}
	switch {
	case last == 1:
		n.namespace = parts[0]
	case last == 2:
		n.host, n.namespace = parts[0], parts[1]
	}
	if marked {
		n.layer = layer
	}
	ok := last <= 2 && hostPart.MatchString(n.host) && slices.Contains([]string{"model", "projector", "adapter"}, n.layer)
	for _, part := range []string{n.namespace, n.model, n.tag} {
		ok = ok && namePart.MatchString(part)
	}
	if !ok || strings.Contains(rest, "..") {
		return n, fault.Errorf(fault.Usage, "%q: want ollama://NAME:TAG, ollama://NAMESPACE/MODEL:TAG or "+
			"ollama://HOST/NAMESPACE/MODEL:TAG, perhaps with #projector or #adapter", name)
	}
	return n, nil
}

// layer is a file of a model, as a manifest describes it.
type layer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

var sum = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// parseManifest returns the only layer of a kind, and the file's name in blobs; place is for messages.
func parseManifest(place, kind string, data []byte) (l layer, blob string, err error) {
	var manifest struct {
		Layers []layer `json:"layers"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return l, "", fault.Errorf(fault.Broken, "%s: is no manifest of Ollama: %w", place, err)
	}
	var kinds []string
	found := 0
	for _, one := range manifest.Layers {
		of, ok := strings.CutPrefix(one.MediaType, layerType)
		if !ok {
			continue
		}
		if of == kind {
			l = one
			found++
		}
		if of = fmt.Sprintf("%.40q", of); !slices.Contains(kinds, of) {
			kinds = append(kinds, of)
		}
	}
	if found != 1 {
		return l, "", fault.Errorf(fault.Unsupported, "%s: has %d layers of the kind %q, want one that is a GGUF file; "+
			"its layers are %s", place, found, kind, cmp.Or(fault.List(kinds), "of no kind"))
	}
	m := sum.FindStringSubmatch(l.Digest)
	if m == nil {
		return l, "", fault.Errorf(fault.Broken, "%s: the digest of the %s is %.80q, want sha256: and 64 hexadecimal digits",
			place, kind, l.Digest)
	}
	if l.Size < 0 {
		return l, "", fault.Errorf(fault.Broken, "%s: the size of the %s is %d", place, kind, l.Size)
	}
	return l, "sha256-" + m[1], nil
}

// ollamaModel finds a model in one store of Ollama.
func (Stores) ollamaModel(dir, name string) (string, error) {
	n, err := parseOllama(name)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	rel := path.Join("manifests", n.host, n.namespace, n.model, n.tag)
	place := filepath.Join(dir, filepath.FromSlash(rel))
	data, err := readIn(root, rel, place, maxManifest)
	if err != nil {
		return "", err
	}
	l, blob, err := parseManifest(place, n.layer, data)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "blobs", blob)
	info, err := root.Lstat("blobs/" + blob)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fault.Errorf(fault.With(fault.Broken, fs.ErrNotExist),
			"%s: %s is missing: the download may not be complete", place, file)
	case err != nil:
		return "", fmt.Errorf("%s: %w", file, err)
	case !info.Mode().IsRegular():
		return "", fault.Errorf(fault.Refused, "%s: is not a regular file", file)
	case info.Size() != l.Size:
		return "", fault.Errorf(fault.Broken, "%s: has %d bytes, want %d as the manifest states, %s", file, info.Size(),
			l.Size, place)
	}
	return file, nil
}

// readIn reads a regular file in root.
func readIn(root *os.Root, rel, place string, most int64) ([]byte, error) {
	info, err := root.Stat(rel)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist), "%s: is not a file", place)
	}
	f, err := root.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return limited(f, place, most)
}

// readFile reads a regular file.
func readFile(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return limited(f, name, most)
}

// limited reads all of r.
func limited(r io.Reader, place string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fault.Errorf(fault.Broken, "%s: more than %d bytes", place, most)
	}
	return data, err
}

// lmStudioModel finds a model in one folder of LM Studio. Links are followed: "lms import" makes them.
func (Stores) lmStudioModel(dir, name string) (string, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(name, lmStudioScheme), "/")
	parts := strings.Split(rest, "/")
	ok := len(parts) >= 2 && len(parts) <= 8 && filepath.IsLocal(filepath.FromSlash(rest)) && fs.ValidPath(rest)
	if !ok || strings.ContainsAny(rest, "\\?\x00") || runtime.GOOS == "windows" && strings.Contains(rest, ":") {
		return "", fault.Errorf(fault.Usage, "%q: want lmstudio://PUBLISHER/MODEL or lmstudio://PUBLISHER/MODEL/FILE.gguf",
			name)
	}
	full := filepath.Join(dir, filepath.FromSlash(rest))
	info, err := os.Stat(full)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return "", fault.Errorf(fault.Refused, "%s: is not a regular file", full)
		}
		return full, nil
	}
	d, err := os.Open(full)
	if err != nil {
		return "", err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	var models, encoders []string
	checkpoint := false
	for _, e := range entries {
		_, no, _, shard := gguf.ParseShardName(e.Name())
		switch {
		case e.Name() == "config.json":
			checkpoint = true
		case e.IsDir() || !strings.HasSuffix(e.Name(), ".gguf") || shard && no > 0:
		case strings.Contains(strings.ToLower(e.Name()), "mmproj"):
			encoders = append(encoders, e.Name())
		default:
			models = append(models, e.Name())
		}
	}
	if models == nil {
		models = encoders
	}
	slices.Sort(models)
	switch {
	case len(models) == 1:
		return filepath.Join(full, models[0]), nil
	case len(models) > 1:
		return "", fault.Errorf(fault.Usage, "%s: has %d models, want %s/ and one of %s", name, len(models),
			lmStudioScheme+rest, fault.List(models))
	case checkpoint:
		return full, nil
	}
	return "", fault.Errorf(fault.Usage, "%s: has no GGUF file and no checkpoint", full)
}
