package bucket

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"ggforge/internal/io/statefile"
)

// state is the state of an upload, for a later run. It contains no access keys.
type state struct {
	Upload string `json:"upload_id"`
	Part   int64  `json:"part_bytes"`
	Size   int64  `json:"size"`
}

// maxState bounds the size of a state file.
const maxState = 64 << 10

// stateKind is the kind of state files. They belong to the object.
var stateKind = statefile.Kind{Name: "upload", Version: 1, Max: maxState}

// object identifies the object that an upload creates, on which server.
func (one *upload) object(endpoint string) string { return endpoint + " " + one.To.String() }

// state is the path of the file with the state.
func (one *upload) state() string { return cmp.Or(one.State, one.Path+StateSuffix) }

// parseState reads the body of a state.
func parseState(data []byte) (s state, ok bool) {
	ok = json.Unmarshal(data, &s) == nil && s.Upload != "" && len(s.Upload) <= 4096 && s.Part > 0 && s.Size > 0
	return s, ok
}

// readState returns the state of an upload that can go on, if there is one: of the same file by its size (the
// parts are compared), to the same place, in the same parts.
func readState(one *upload, endpoint string) (state, bool) {
	data, err := stateKind.ReadOf(one.state(), one.object(endpoint))
	if err != nil {
		return state{}, false
	}
	s, ok := parseState(data)
	return s, ok && s == state{s.Upload, one.piece, one.size}
}

// writeState writes the state of an upload.
func writeState(one *upload, endpoint string) error {
	data, err := json.Marshal(state{one.id, one.piece, one.size})
	if err != nil {
		return err
	}
	return stateKind.Write(one.state(), one.object(endpoint), data)
}

// removeState removes the state of a complete upload.
func removeState(one *upload) error {
	err := os.Remove(one.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
