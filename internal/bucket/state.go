package bucket

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
)

// state is what is known of an upload. It names no keys.
type state struct {
	Endpoint string `json:"endpoint"`
	Object   string `json:"object"`
	Upload   string `json:"upload_id"`
	Part     int64  `json:"part_bytes"`
	Size     int64  `json:"size"`
}

// maxState is the most that a file of state may have.
const maxState = 64 << 10

// parseState reads a state.
func parseState(data []byte) (s state, ok bool) {
	ok = json.Unmarshal(data, &s) == nil && s.Upload != "" && len(s.Upload) <= 4096 && s.Part > 0 && s.Size > 0
	return s, ok
}

// readState returns the state of an upload that can go on, if there is one: of the same file by its size (the
// parts are compared), to the same place, in the same parts.
func readState(one *upload, endpoint string) (state, bool) {
	name := one.Path + StateSuffix
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() { // a pipe would have us wait
		return state{}, false
	}
	f, err := os.Open(name)
	if err != nil {
		return state{}, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return state{}, false
	}
	s, ok := parseState(data)
	return s, ok && s == state{endpoint, one.To.String(), s.Upload, one.piece, one.size}
}

// writeState notes where an upload is.
func writeState(one *upload, endpoint string) (err error) {
	data, err := json.Marshal(state{endpoint, one.To.String(), one.id, one.piece, one.size})
	if err != nil {
		return err
	}
	path := one.Path + StateSuffix
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // of a run that was killed in this moment
		if err = os.Remove(path + ".new"); err == nil {
			f, err = os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		os.Remove(path + ".new")
	}
	return err
}

// removeState forgets an upload that is complete.
func removeState(one *upload) error {
	err := os.Remove(one.Path + StateSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
