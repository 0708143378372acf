package bucket

import (
	"context"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/fetch"
)

// Incomplete is an incomplete multipart upload.
type Incomplete struct {
	Name  Name
	ID    string
	Begun time.Time
}

// maxIncomplete limits the number of listed uploads.
const maxIncomplete = 100_000

// Incomplete lists the incomplete multipart uploads in a folder.
func (c *Client) Incomplete(ctx context.Context, folder Name) ([]Incomplete, error) {
	return c.incomplete(ctx, folder.Folder())
}

// incomplete lists the incomplete multipart uploads whose keys begin like that of prefix.
func (c *Client) incomplete(ctx context.Context, prefix Name) (list []Incomplete, err error) {
	err = c.list(ctx, prefix.String(), func(ctx context.Context) error {
		list = nil
		for key, id := "", ""; ; {
			ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
			page, err := c.core.ListMultipartUploads(ctx, prefix.Bucket, prefix.Key, key, id, "", 1000)
			err = explained(fetch.Quiet(ctx, err), prefix.String())
			stop()
			if err != nil {
				return err
			}
			for _, u := range page.Uploads {
				list = append(list, Incomplete{Name{prefix.Bucket, u.Key}, u.UploadID, u.Initiated})
			}
			if !page.IsTruncated {
				return nil
			}
			if page.NextKeyMarker == key && page.NextUploadIDMarker == id || len(list) > maxIncomplete {
				return fault.Errorf(fault.Broken, "%s: the server's list of multipart uploads does not end", prefix)
			}
			key, id = page.NextKeyMarker, page.NextUploadIDMarker
		}
	})
	return list, err
}

// Sweep aborts the incomplete uploads of an object that exists, if they began before the client was made: processes that
// were killed have left them. Later ones are of processes that run. What the server refuses to list or to abort stays; any
// other error ends it.
func (c *Client) Sweep(ctx context.Context, n Name) error {
	list, err := c.incomplete(ctx, n) // MinIO lists those of whole keys only
	if err := unlessRefused(err); err != nil {
		return err
	}
	for _, u := range list {
		if u.Name == n && u.Begun.Before(c.made) {
			if err := unlessRefused(c.Abort(ctx, u)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlessRefused returns nil for an answer of the server, else the error.
func unlessRefused(err error) error {
	if status(err) != 0 {
		return nil
	}
	return err
}

// Abort aborts an upload: the server deletes its parts.
func (c *Client) Abort(ctx context.Context, u Incomplete) error {
	return c.retry(ctx, func() (int, error) {
		ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
		defer stop()
		return 0, explained(fetch.Quiet(ctx, c.core.AbortMultipartUpload(ctx, u.Name.Bucket, u.Name.Key, u.ID)),
			u.Name.String())
	})
}
