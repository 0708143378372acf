package push

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/hub"
	"ggforge/internal/io/statefile"
	"ggforge/model/identity"
	"ggforge/publish/release"
	"ggforge/writer"
)

// The state of pushes is in a folder that only the user can read, below the one that is published: it has addresses
// with signatures, which are secrets while they hold.
//
//	.ggtool-release/push/held            locked while a process pushes
//	                     sums            sums of the folder's files, with size, time and identity
//	                     HEX.grant       permission to send an object in parts
//	                     HEX.tags        a line for each part that the store has: NUMBER CRC TAG
//	                     HEX.pull        the pull request that was opened
//
// HEX is of the destination and the object. Tags belong to the grant whose sum is in their first line. What is garbled,
// or of another destination, is forgotten.
const (
	pushDir  = "push"
	heldName = "held"
)

// Kinds of state.
var (
	grantKind = statefile.Kind{Name: "permission to send a file", Version: 1, Max: maxGrant}
	sumsKind  = statefile.Kind{Name: "sums of a pushed folder", Version: 1, Max: maxKnown}
	pullKind  = statefile.Kind{Name: "pull request", Version: 1, Max: maxPull}
)

const (
	maxGrant = 32 << 20 // bytes of a permission
	maxTags  = 16 << 20 // bytes of the tags of its parts
	maxKnown = 16 << 20 // bytes of sums
	maxPull  = 64 << 10 // bytes about a pull request
)

// state is the state of pushes of a folder. Without a folder to write to (dir is ""), nothing is kept.
type state struct {
	dir     string
	release func() error

	mu   sync.Mutex
	tags map[string]*os.File // open files of tags, by path
}

// openState makes and locks the folder of the state. Where nothing can be written, the state is not kept, and warn gets
// the reason.
func openState(dir string, warn func(string)) (*state, error) {
	s := &state{dir: filepath.Join(dir, release.StateDir, pushDir), release: func() error { return nil },
		tags: map[string]*os.File{}}
	err := disk.MkdirAll(s.dir, 0o700)
	var info fs.FileInfo
	if err == nil {
		info, err = disk.Lstat(s.dir)
	}
	if err == nil && !info.IsDir() {
		return nil, fault.Errorf(fault.Usage, "%s: want a folder of its own that ggtool push makes; remove it", s.dir)
	}
	if err == nil {
		s.release, err = writer.LockNew(filepath.Join(s.dir, heldName))
	}
	switch {
	case errors.Is(err, fault.Usage):
		return nil, fmt.Errorf("%s: another process pushes it: %w", dir, err)
	case err != nil:
		warn(fmt.Sprintf("%s: no state can be kept in it (%v): an interrupted run begins again with each file", dir,
			err))
		s.dir, s.release = "", func() error { return nil }
	}
	return s, nil
}

// close unlocks the state, and removes its folders if they are empty.
func (s *state) close() error {
	s.mu.Lock()
	for _, f := range s.tags {
		f.Close()
	}
	clear(s.tags)
	s.mu.Unlock()
	err := s.release()
	if s.dir != "" {
		disk.Remove(s.dir)
		disk.Remove(filepath.Dir(s.dir))
	}
	return err
}

// path returns the path of a file of state that belongs to something.
func (s *state) path(of, suffix string) string {
	sum := sha256.Sum256([]byte(of))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:12])+suffix)
}

// grant returns the permission to send an object that an earlier run had, and the tags of the parts that it has sent.
func (s *state) grant(of string, o hub.Object, secure bool) (g *hub.Grant, tags []string, ok bool) {
	if s.dir == "" {
		return nil, nil, false
	}
	data, err := grantKind.ReadOf(s.path(of, ".grant"), of)
	if err != nil {
		return nil, nil, false
	}
	if g, err = parseGrant(data, o, secure); err != nil {
		return nil, nil, false
	}
	log, err := readTags(s.path(of, ".tags"))
	if err != nil {
		return nil, nil, false
	}
	tags, ok = parseTags(log, grantSum(data), len(g.Parts))
	return g, tags, ok
}

// parseGrant reads a permission in parts for an object.
func parseGrant(data []byte, o hub.Object, secure bool) (*hub.Grant, error) {
	g := new(hub.Grant)
	if err := json.Unmarshal(data, g); err != nil {
		return nil, fault.Errorf(fault.Broken, "%w", err)
	}
	if err := g.Check(o, secure); err != nil {
		return nil, err
	}
	if g.There || g.Put != "" {
		return nil, fault.Errorf(fault.Broken, "a permission without parts")
	}
	return g, nil
}

func grantSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readTags reads a file of tags of the user's own.
func readTags(path string) ([]byte, error) {
	f, err := statefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTags+1))
	if err == nil && len(data) > maxTags {
		err = fault.Errorf(statefile.ErrDamaged, "%s: more than %d bytes", path, maxTags)
	}
	return data, err
}

// parseTags reads the tags of n parts, up to the first line that is not whole. ok is false for those of another
// permission than that with the sum.
func parseTags(data []byte, sum string, n int) (tags []string, ok bool) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	if !lines.Scan() || lines.Text() != sum {
		return nil, false
	}
	tags = make([]string, n)
	for lines.Scan() {
		first, rest, two := strings.Cut(lines.Text(), " ")
		check, tag, three := strings.Cut(rest, " ")
		number, err := strconv.Atoi(first)
		if !two || !three || err != nil || number < 1 || number > n || tag == "" || check != tagCheck(first, tag) {
			break
		}
		tags[number-1] = tag
	}
	return tags, true
}

// tagCheck returns the checksum of a line.
func tagCheck(number, tag string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(number+" "+tag)))
}

// keepGrant keeps a permission, before a part is sent.
func (s *state) keepGrant(of string, g *hub.Grant) error {
	if s.dir == "" {
		return nil
	}
	s.forget(of)
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if err := grantKind.Write(s.path(of, ".grant"), of, data); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path(of, ".tags"), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.WriteString(grantSum(data) + "\n")
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tags[of] = f
	return nil
}

// keepTag keeps the tag of a part, from 0.
func (s *state) keepTag(of string, n int, tag string) error {
	if s.dir == "" || strings.ContainsAny(tag, "\r\n") {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.tags[of]
	if f == nil { // of an earlier run
		path := s.path(of, ".tags")
		if err := statefile.Check(path); err != nil {
			return err
		}
		var err error
		if f, err = os.OpenFile(path, os.O_RDWR|disk.NoFollow, 0); err != nil {
			return err
		}
		if err := cutTorn(f); err != nil {
			f.Close()
			return err
		}
		s.tags[of] = f
	}
	number := strconv.Itoa(n + 1)
	_, err := fmt.Fprintf(f, "%s %s %s\n", number, tagCheck(number, tag), tag)
	return err
}

// cutTorn cuts off a last line without an end, and goes to the end.
func cutTorn(f *os.File) error {
	data, err := io.ReadAll(io.LimitReader(f, maxTags))
	if err != nil {
		return err
	}
	end := int64(bytes.LastIndexByte(data, '\n') + 1)
	if err := f.Truncate(end); err != nil {
		return err
	}
	_, err = f.Seek(end, io.SeekStart)
	return err
}

// forget forgets the permission to send an object.
func (s *state) forget(of string) {
	if s.dir == "" {
		return
	}
	s.mu.Lock()
	if f := s.tags[of]; f != nil {
		f.Close()
		delete(s.tags, of)
	}
	s.mu.Unlock()
	disk.Remove(s.path(of, ".grant"))
	disk.Remove(s.path(of, ".tags"))
}

// pull is the pull request that a push has opened.
type pull struct {
	Branch string `json:"branch"`
	URL    string `json:"url"`
}

// pull returns the pull request that an earlier run has opened, nil for none.
func (s *state) pull(of string) *pull {
	if s.dir == "" {
		return nil
	}
	data, err := pullKind.ReadOf(s.path(of, ".pull"), of)
	p := new(pull)
	if err != nil || json.Unmarshal(data, p) != nil || !hub.IsPullRequest(p.Branch) {
		return nil
	}
	return p
}

// keepPull keeps the pull request.
func (s *state) keepPull(of string, p pull) error {
	if s.dir == "" {
		return nil
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return pullKind.Write(s.path(of, ".pull"), of, data)
}

// sums are the sums of a folder's files that an earlier push has taken.
type sums struct {
	mu    sync.Mutex
	Files map[string]sum `json:"files"` // by name
}

// sum is the sum of a file, and what it had at that time.
type sum struct {
	Time   int64  `json:"time"` // of modification, in nanoseconds
	ID     string `json:"id"`   // see package identity
	SHA256 string `json:"sha256"`
}

// sums returns the sums that an earlier push has taken, none if there was none.
func (s *state) sums() *sums {
	known := new(sums)
	if s.dir != "" {
		if data, err := sumsKind.ReadOf(filepath.Join(s.dir, "sums"), ""); err == nil {
			if json.Unmarshal(data, known) != nil {
				known = new(sums)
			}
		}
	}
	if known.Files == nil {
		known.Files = map[string]sum{}
	}
	return known
}

// keepSums keeps the sums of the folder's files.
func (s *state) keepSums(known *sums, f *folder) error {
	if s.dir == "" {
		return nil
	}
	for name := range known.Files {
		if f.find(name) == nil {
			delete(known.Files, name)
		}
	}
	data, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return sumsKind.Write(filepath.Join(s.dir, "sums"), "", data)
}

// get returns the sum of a file that has not changed, "" if it is not known.
func (s *sums) get(name string, now identity.File) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, ok := s.Files[name]; ok && x.Time == now.Modified.UnixNano() && x.ID == now.String() {
		return x.SHA256
	}
	return ""
}

func (s *sums) set(name string, now identity.File, sha256 string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Files[name] = sum{now.Modified.UnixNano(), now.String(), sha256}
}
