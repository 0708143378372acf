package bucket

import (
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"ggforge/fault"
)

// Scheme is how names of objects begin.
const Scheme = "s3://"

// Is reports whether a name is that of an object or of several with the same beginning: s3://BUCKET/KEY.
func Is(name string) bool { return strings.HasPrefix(name, Scheme) }

// Name is an object, or a bucket if Key is "".
type Name struct{ Bucket, Key string }

// String returns the name as Parse reads it.
func (n Name) String() string { return Scheme + n.Bucket + "/" + n.Key }

// URL returns the name as an address for package fetch.
func (n Name) URL() string {
	return (&url.URL{Scheme: strings.TrimSuffix(Scheme, "://"), Host: n.Bucket, Path: "/" + n.Key}).String()
}

// maxKey is the longest key of an object in bytes.
const maxKey = 1024

// Parse parses s3://BUCKET or s3://BUCKET/KEY. Nothing is escaped in it, as with other tools.
func Parse(name string) (n Name, err error) {
	rest, ok := strings.CutPrefix(name, Scheme)
	n.Bucket, n.Key, _ = strings.Cut(rest, "/")
	if !ok || s3utils.CheckValidBucketName(n.Bucket) != nil || len(n.Key) > maxKey ||
		n.Key != "" && s3utils.CheckValidObjectName(n.Key) != nil {
		return Name{}, fault.Errorf(fault.Usage, "%q: want s3://BUCKET/KEY", name)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(n.Key, "/"), "/") {
		if part == "." || part == ".." || part == "" && n.Key != "" {
			return Name{}, fault.Errorf(fault.Usage, "%q: want s3://BUCKET/KEY, no part of which is empty, . or ..",
				name)
		}
	}
	return n, nil
}
