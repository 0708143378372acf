package checkpoint

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
)

// AdapterConfig is the configuration file of an adapter of the PEFT library.
const AdapterConfig = "adapter_config.json"

// The weights of an adapter, the preferred ones first.
const (
	adapterSafetensors = "adapter_model.safetensors"
	adapterPickle      = "adapter_model.bin"
)

// Adapter reports whether the directory has an adapter of the PEFT library and no model.
func (d *Dir) Adapter() bool {
	names, err := d.names()
	if err != nil || !slices.Contains(names, AdapterConfig) {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		return safetensors.IsModelFile(name) || slices.ContainsFunc(pickleNames, func(n safetensors.Naming) bool {
			return strings.HasPrefix(name, n.Prefix) && strings.HasSuffix(name, n.Suffix)
		})
	})
}

// AdapterWeights opens the weights of an adapter. The caller closes the store.
func (d *Dir) AdapterWeights() (Store, error) {
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(names, adapterSafetensors):
		// in the order of the data, as the reference's reader returns the tensors of one file
		return d.FileAsLaidOut(adapterSafetensors)
	case slices.Contains(names, adapterPickle):
		return d.openPickles(names, safetensors.Naming{Prefix: strings.TrimSuffix(adapterPickle, ".bin"),
			Suffix: ".bin"})
	}
	return nil, fault.Errorf(fault.With(fault.Broken, fs.ErrNotExist), "%s: has neither %s nor %s", d.Path,
		adapterSafetensors, adapterPickle)
}

// HubSnapshot returns the directory of a model's snapshot in the hub's cache. The model is ORG/NAME; revision is a
// branch, tag or commit, "" for main; cache is the folder with the models. The error for a missing snapshot is
// fs.ErrNotExist.
func HubSnapshot(cache, id, revision string) (string, error) {
	org, name, two := strings.Cut(id, "/")
	if !two {
		org, name = "", id
	}
	if two && !hubName.MatchString(org) || !hubName.MatchString(name) || strings.Contains(id, "..") {
		return "", fault.Errorf(fault.Usage, "%q: want the ID of a model of the hub, ORG/NAME", id)
	}
	folder := filepath.Join(cache, hubPrefix+strings.ReplaceAll(id, "/", "--"))
	c, err := Open(folder, Options{})
	if err != nil {
		return "", fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist),
			"the model %s is not in the hub's cache, %s", id, cache)
	}
	defer c.Close()
	revision = cmp.Or(revision, "main")
	if !hubRevision.MatchString(revision) || strings.Contains(revision, "..") {
		return "", fault.Errorf(fault.Broken, "%q: want the revision of a model of the hub", revision)
	}
	if st, err := c.Stat(hubSnapshots + "/" + revision); err == nil && st.IsDir() {
		return filepath.Join(folder, hubSnapshots, revision), nil
	}
	commit, err := c.ReadFile("refs/" + revision)
	if err != nil {
		return "", fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist), "%s: %w", folder, err)
	}
	hash := strings.TrimSpace(string(commit))
	if hash == "" || strings.Trim(hash, "0123456789abcdefABCDEF") != "" {
		return "", fault.Errorf(fault.Broken, "%s: refs/%s: want the hash of a commit, found %q", folder, revision,
			hash[:min(len(hash), 60)])
	}
	return filepath.Join(folder, hubSnapshots, hash), nil
}
