package digest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"ggforge/fault"
)

// ParseSums reads a list of SHA-256 sums as sha256sum writes it, in the file at path. names are the paths of the files,
// whose names in the list are relative to its folder; a name that occurs several times, with the same sum, counts once.
// An error about the content has kind fault.Broken, one about more than most files fault.Usage.
func ParseSums(path string, data []byte, most int) (sums map[string]string, names []string, err error) {
	sums = map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for no := 1; lines.Scan(); no++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" {
			continue
		}
		sum, name, ok := strings.Cut(line, " ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size || len(name) < 2 ||
			name[0] != ' ' && name[0] != '*' {
			return nil, nil, fault.Errorf(fault.Broken,
				"%s, line %d: want a SHA-256 sum, two spaces and the name of a file", path, no)
		}
		full := filepath.Join(filepath.Dir(path), name[1:])
		sum = strings.ToLower(sum)
		switch other, there := sums[full]; {
		case there && other != sum:
			return nil, nil, fault.Errorf(fault.Broken, "%s, line %d: %q has another sum than in an earlier line", path,
				no, name[1:])
		case there: // counts once
			continue
		case len(names) == most:
			return nil, nil, fault.Errorf(fault.Usage, "%s: names more than %d files: want several lists", path, most)
		}
		sums[full] = sum
		names = append(names, full)
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return nil, nil, fault.Errorf(fault.Broken, "%s: has no SHA-256 sum", path)
	}
	return sums, names, nil
}
