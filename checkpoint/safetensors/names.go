package safetensors

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Folder is a directory whose files are opened by name. It decides which links to follow, and opens regular files only:
// see package checkpoint.
type Folder interface {
	ReadDir(name string) ([]fs.DirEntry, error) // sorted; of "."
	OpenFile(name string) (*os.File, error)
}

// Naming has the names of the files of a checkpoint.
type Naming struct {
	Index          string // of the file that maps tensors to shards
	Prefix, Suffix string // of the others
}

var (
	naming = Naming{IndexName, prefix, suffix}
	merged = Naming{"", consolidated, suffix} // Mistral's own, which has no index
)

// consolidated is the prefix of weight files in Mistral's own format.
const consolidated = "consolidated"

// fileNames lists a directory, sorted.
func fileNames(in Folder) ([]string, error) {
	list, err := in.ReadDir(".")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, nil
}

// OpenSet opens the files of a checkpoint in any format under the rules of OpenDir.
// names are the files of the directory, sorted; open opens one of them and returns the
// names of its tensors. It is called in reading order, and nothing is closed after an
// error. A directory without such files gives an ErrNone.
func OpenSet(in Folder, dir string, names []string, n Naming, open func(name string) ([]string, error)) error {
	files := matching(names, n.Prefix, n.Suffix)
	if n.Index != "" && slices.Contains(names, n.Index) {
		path := filepath.Join(dir, n.Index)
		index, err := openIndex(in, path)
		if err != nil {
			return err
		}
		return openIndexed(path, index, files, open)
	}
	if len(files) == 0 {
		return noWeights(dir, names, n)
	}
	var d defects
	findGaps(files, n.Suffix, &d)
	return openShards(dir, files, nil, &d, open)
}

// IsModelFile reports whether OpenDir always takes a file of that name for a part of the checkpoint.
func IsModelFile(name string) bool {
	return name == IndexName || len(matching([]string{name}, prefix, suffix)) > 0
}

func matching(names []string, prefix, suffix string) []string {
	var found []string
	for _, n := range names {
		if strings.HasPrefix(n, prefix) && strings.HasSuffix(n, suffix) {
			found = append(found, n)
		}
	}
	return found
}

// noWeights returns the error for a directory without weights.
func noWeights(dir string, names []string, n Naming) error {
	msg := "no " + n.Prefix + "*" + n.Suffix
	if other := matching(names, "", n.Suffix); len(other) > 0 {
		msg += fmt.Sprintf("; %s has another name", quote(other[0]))
	}
	return &FormatError{Path: dir, Offset: -1, Msg: msg, none: true}
}

// findGaps looks for gaps in files named NAME-NUMBER-of-COUNT and the suffix.
// Other names pass.
func findGaps(files []string, suffix string, d *defects) {
	type set struct {
		name, count string // count as written, since its width is that of the numbers
	}
	have := map[set]map[int]bool{}
	var sets []set // in order of appearance
	for _, file := range files {
		name, no, count, ok := cutNumber(file, suffix)
		if !ok {
			continue
		}
		s := set{name, count}
		n, _ := strconv.Atoi(count)
		i, _ := strconv.Atoi(no)
		if i < 1 || i > n {
			d.add(badName, "%s: the number is out of range", quote(file))
			continue
		}
		if have[s] == nil {
			have[s] = map[int]bool{}
			sets = append(sets, s)
		}
		have[s][i] = true
	}
	for _, s := range sets {
		n, _ := strconv.Atoi(s.count)
		missing := n - len(have[s])
		for i := 1; i <= n && missing > 0; i++ {
			if have[s][i] {
				continue
			}
			if d[missingFile].n >= maxPerKind { // the loop must not depend on a number in a name
				d[missingFile].n += missing
				break
			}
			d.add(missingFile, "%s: missing", quote(fmt.Sprintf("%s-%0*d-of-%s%s", s.name, len(s.count), i,
				s.count, suffix)))
			missing--
		}
	}
}

// cutNumber parses "model-00001-of-00003.safetensors".
func cutNumber(file, suffix string) (name, no, count string, ok bool) {
	rest, ok1 := strings.CutSuffix(file, suffix)
	rest, count, ok2 := cutLast(rest, "-of-")
	name, no, ok3 := cutLast(rest, "-")
	return name, no, count, ok1 && ok2 && ok3 && isNumber(no) && isNumber(count)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// isNumber accepts up to nine digits, which fit an int anywhere.
func isNumber(s string) bool {
	return s != "" && len(s) <= 9 && strings.Trim(s, "0123456789") == ""
}
