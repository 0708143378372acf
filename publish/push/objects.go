package push

import (
	"context"
	"slices"

	"ggforge/fault"
	"ggforge/internal/io/bucket"
)

// client returns a client of the server of objects.
func (p *Push) client() (*bucket.Client, error) {
	return bucket.New(bucket.Options{Endpoint: p.opt.S3Endpoint, Region: p.opt.S3Region, Stall: p.opt.Stall,
		Pause: p.opt.Pause})
}

// toBucket pushes to objects.
func (p *Push) toBucket(ctx context.Context, s *state) (*Result, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	known := s.sums()
	if err := p.prepare(ctx, known); err != nil {
		return nil, err
	}
	if err := s.keepSums(known, p.folder); err != nil {
		return nil, err
	}
	var files []bucket.File
	names := map[bucket.Name]string{}
	for _, f := range p.folder.files {
		one := bucket.File{Path: f.path, To: bucket.Name{Bucket: p.object.Bucket, Key: p.object.Key + f.Name}}
		if s.dir != "" {
			one.State = s.path(one.To.String(), bucket.StateSuffix)
		}
		names[one.To] = f.Name
		p.mark(f.Name, Sent)
		files = append(files, one)
	}
	card := func(f bucket.File) int { // the first one appears last: who sees the card sees all files
		if names[f.To] == CardName {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(files, func(a, b bucket.File) int { return card(a) - card(b) })
	r := &Result{Sent: p.folder.bytes()}
	err = client.Upload(ctx, files, bucket.UploadOptions{Force: p.opt.Force, Same: true, Workers: p.opt.Parallel,
		Found: func(f bucket.File) {
			name := names[f.To]
			p.mark(name, Unchanged)
			r.Sent -= p.folder.find(name).Bytes
		},
		Progress: func(done, total int64) { p.progress(Progress{Part: "send", Done: done, Total: total}) }})
	err = refused(err)
	for _, state := range p.states {
		r.Changed = r.Changed || state == Sent
	}
	return r, err
}

// refused makes an error about access one of kind fault.Refused, as the hub's are.
func refused(err error) error {
	if bucket.IsDenied(err) {
		return fault.Errorf(fault.Refused, "%w", err)
	}
	return err
}

// predictBucket returns what toBucket would do, by names and sizes.
func (p *Push) predictBucket(ctx context.Context, known *sums) (*Result, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := p.prepare(ctx, known); err != nil {
		return nil, err
	}
	list, err := client.List(ctx, p.object, maxListed)
	if err != nil {
		return nil, refused(err)
	}
	r := &Result{}
	there := map[string]int64{}
	for _, o := range list {
		there[o.Name] = o.Bytes
		if p.folder.find(o.Name) == nil {
			r.Others = append(r.Others, o.Name)
		}
	}
	for _, f := range p.folder.files {
		if size, ok := there[f.Name]; ok && size == f.Bytes {
			p.mark(f.Name, Stored)
			continue
		}
		p.mark(f.Name, ToSend)
		r.Sent += f.Bytes
		r.Changed = true
	}
	return r, nil
}

// maxListed is the largest number of objects that a folder of objects may have.
const maxListed = 100_000
