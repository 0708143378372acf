package upload

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/bucket"
)

// Whole is an output of one process that becomes an object when it is complete. Until then it is a file in a temporary
// folder, which no later run takes up: it is for outputs whose work is kept elsewhere, or is short. The methods of nil,
// for outputs that are files of this machine, do nothing.
type Whole struct {
	path   string
	to     bucket.Name
	client *bucket.Client
	force  bool
}

// NewWhole returns the output out, s3://BUCKET/KEY, and the path of its file. For a file of this machine it returns nil
// and out. The caller calls Close.
func NewWhole(out string, force bool) (w *Whole, path string, err error) {
	if !bucket.Is(out) {
		return nil, out, nil
	}
	w = &Whole{force: force}
	if w.to, w.client, err = open(out); err != nil {
		return nil, "", err
	}
	folder, err := os.MkdirTemp("", "ggforge-")
	if err != nil {
		w.client.Close()
		return nil, "", err
	}
	w.path = filepath.Join(folder, filepath.Base(w.to.Key))
	return w, w.path, nil
}

// open parses the name of an object, and returns a client for its server.
func open(out string) (to bucket.Name, c *bucket.Client, err error) {
	to, err = bucket.Parse(out)
	if base := path.Base(to.Key); err == nil &&
		(to.Key == "" || strings.HasSuffix(to.Key, "/") || !filepath.IsLocal(base)) {
		err = fault.Errorf(fault.Usage, "%q: want an object: s3://BUCKET/KEY, whose last part is a name of a file", out)
	}
	if err == nil {
		c, err = bucket.New(bucket.Environment())
	}
	return to, c, err
}

// Vacant returns an error that is fs.ErrExist if the object exists and may not be replaced.
func (w *Whole) Vacant(ctx context.Context) error {
	if w == nil || w.force {
		return nil
	}
	return w.client.Vacant(ctx, w.to)
}

// Send makes the object from the file, and aborts uploads of it that killed processes have left. An object that has its
// content already is no error.
func (w *Whole) Send(ctx context.Context) error {
	if w == nil {
		return nil
	}
	err := w.client.Upload(ctx, []bucket.File{{Path: w.path, To: w.to}},
		bucket.UploadOptions{Force: w.force, Same: true})
	if err != nil && !errors.Is(err, bucket.ErrSame) {
		return err
	}
	return w.client.Sweep(ctx, w.to)
}

// Close removes the file.
func (w *Whole) Close() error {
	if w == nil {
		return nil
	}
	w.client.Close()
	return os.RemoveAll(filepath.Dir(w.path))
}

// Vacant returns an error that is fs.ErrExist if the object out exists and may not be replaced.
func Vacant(ctx context.Context, out string, force bool) error {
	to, c, err := open(out)
	if err != nil {
		return err
	}
	defer c.Close()
	if force {
		return nil
	}
	return c.Vacant(ctx, to)
}

// Bytes makes the object out, s3://BUCKET/KEY, on the condition that there is none unless force is true.
func Bytes(ctx context.Context, out string, data []byte, force bool) error {
	to, c, err := open(out)
	if err != nil {
		return err
	}
	defer c.Close()
	if force {
		return c.Put(ctx, to, data)
	}
	made, err := c.Create(ctx, to, data)
	if err != nil || made {
		return err
	}
	if there, _, err := c.Get(ctx, to, int64(len(data))); err == nil && string(there) == string(data) {
		return nil // made by a request whose answer was lost
	}
	return fault.Permits("Force", fault.Errorf(fault.With(fault.Usage, fs.ErrExist), "%s: exists", to))
}
