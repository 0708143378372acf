package partfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ggforge/internal/io/bucket"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/part"
)

// objects are the parts of a job in an object store. This process has files of them in a temporary folder while it
// works.
type objects struct {
	client *bucket.Client
	name   bucket.Name // of the job: parts have longer keys
	folder string
}

// maxObjects is the number of objects in the folder of the parts, at most.
const maxObjects = 1_000_000

// open makes the folder for the files of parts that are objects.
func (j *Job) open() error {
	if j.objects != nil || !bucket.Is(j.Out) {
		return nil
	}
	o := &objects{}
	var err error
	if o.name, err = bucket.Parse(j.Out); err != nil {
		return err
	}
	if o.client, err = bucket.New(bucket.Environment()); err != nil {
		return err
	}
	if o.folder, err = os.MkdirTemp("", "ggforge-parts-"); err != nil {
		return err
	}
	j.objects = o
	return nil
}

// Close removes the files of parts that are objects.
func (j *Job) Close() error {
	if j.objects == nil {
		return nil
	}
	j.objects.client.Close()
	return os.RemoveAll(j.objects.folder)
}

// object returns the object of a part.
func (j *Job) object(p part.Part) bucket.Name {
	return bucket.Name{Bucket: j.objects.name.Bucket, Key: j.objects.name.Key + infix + p.String()}
}

// fetch gets the file of a part that is an object. One that does not exist is fs.ErrNotExist. An object that is not that
// part of the job by its head, or has another size, is not read further.
func (j *Job) fetch(ctx context.Context, p part.Part) error {
	if j.objects == nil {
		return nil
	}
	name := j.Path(p)
	return j.objects.client.Download(ctx, j.object(p), j.file(p), func(begin io.Reader, size int64) error {
		first, err := io.ReadAll(io.LimitReader(begin, int64(before)))
		if err != nil {
			return err
		}
		n, err := headBytes(name, first, size)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(begin, n))
		if err != nil {
			return err
		}
		h, err := parseHead(name, text, n, size)
		if err != nil {
			return err
		}
		return j.fits(name, &h, p)
	})
}

// send makes the object of a part from its file.
func (j *Job) send(ctx context.Context, p part.Part) error {
	if j.objects == nil {
		return nil
	}
	file := bucket.File{Path: j.file(p), To: j.object(p)}
	err := j.objects.client.Upload(ctx, []bucket.File{file}, bucket.UploadOptions{Force: true, Same: true})
	if errors.Is(err, fs.ErrExist) && errors.Is(err, bucket.ErrSame) {
		return nil
	}
	return err
}

// sweep aborts the uploads of a part that killed processes have left: it is complete.
func (j *Job) sweep(ctx context.Context, p part.Part) error {
	if j.objects == nil {
		return nil
	}
	return j.objects.client.Sweep(ctx, j.object(p))
}

// names returns the names of all files in the folder of the parts, and the name of the job in it.
func (j *Job) names(ctx context.Context) (base string, names []string, err error) {
	if o := j.objects; o != nil {
		i := strings.LastIndex(o.name.Key, "/") + 1
		base = o.name.Key[i:]
		list, err := o.client.ListPrefix(ctx, bucket.Name{Bucket: o.name.Bucket, Key: o.name.Key[:i]}, base+infix,
			maxObjects)
		for _, one := range list {
			names = append(names, one.Name)
		}
		return base, names, err
	}
	dir, base := filepath.Split(j.Out)
	list, err := disk.ReadDir(filepath.Clean(dir))
	for _, e := range list {
		names = append(names, e.Name())
	}
	return base, names, err
}
