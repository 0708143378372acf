package checkpoint

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"
	"time"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/fetch"
)

// Remote has the settings for models on a server. The zero value reads public models of the Hugging Face hub.
type Remote struct {
	// Endpoint is the address of the hub, without a slash at its end; default HubEndpoint.
	Endpoint string
	// Token is the access token of the hub, for private and gated models. It is sent to no other server, even after a
	// redirect.
	Token string
	// S3Endpoint is the address of the S3 server for s3://BUCKET/KEY, S3Region its region. The default is Amazon's
	// server, which also returns the region. Access keys come from the usual environment variables.
	S3Endpoint, S3Region string
	// Cache is a folder for fetched parts of the weights, from which a later run resumes; "" for none.
	Cache string
	// Stall is how long a server may send nothing, by default 30 seconds; Pause is the wait before the first retry, by
	// default half a second.
	Stall, Pause time.Duration
}

// HubEndpoint is the address of the Hugging Face hub.
const HubEndpoint = "https://huggingface.co"

const (
	hubScheme = "hf://"

	maxListing    = 32 << 20 // bytes of the hub's list of a model's files
	maxFiles      = 100_000  // of a model
	maxSideFiles  = 1_000    // that are fetched before the weights
	maxIndexBytes = safetensors.MaxHeader
)

// maxSideBytes bounds the bytes of all side files of a model; a test lowers it.
var maxSideBytes int64 = 512 << 20

// address is a model on a server.
type address struct {
	id       string      // ORG/NAME in the hub, "" elsewhere
	revision string      // branch, tag or commit
	base     *url.URL    // URL of the folder, nil in the hub; its path ends in a slash
	folder   bucket.Name // folder in S3; without a bucket elsewhere

	component string // folder of a text encoder in a model of the hub, "" for the whole model; elsewhere base has it
}

var (
	hubName     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	hubRevision = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*$`)
)

// IsRemote reports whether a name is that of a model on a server: hf://ORG/NAME,
// hf://ORG/NAME@REVISION, either with /text_encoder or /text_encoder_2 at the end for a text encoder of a pipeline,
// s3://BUCKET/FOLDER, or an address that begins with http:// or https://.
func IsRemote(name string) bool {
	return strings.HasPrefix(name, hubScheme) || isHTTP(name) || bucket.Is(name)
}

func isHTTP(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// HubAddress returns the address of the model in the hub with that ID, ORG/NAME or
// ORG/NAME@REVISION.
func HubAddress(id string) string { return hubScheme + strings.TrimPrefix(id, hubScheme) }

// parseAddress parses what IsRemote accepts. The page of a model in the hub is the
// model; any other address is a folder with its files.
func parseAddress(name, endpoint string) (a address, err error) {
	if bucket.Is(name) {
		folder, err := bucket.Parse(name)
		if err != nil {
			return a, err
		}
		folder = folder.Folder()
		base, err := url.Parse(folder.URL())
		return address{base: base, folder: folder}, err
	}
	id, hub := strings.CutPrefix(name, hubScheme)
	if !hub {
		u, err := url.Parse(name)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return a, fault.Errorf(fault.Usage,
				"%s: want the address of a folder, https://HOST/PATH, without user, query and fragment", shown(name))
		}
		rest, ok := strings.CutPrefix(strings.TrimSuffix(name, "/"), endpoint+"/")
		parts := strings.Split(rest, "/")
		switch {
		case ok && len(parts) == 2:
			id, hub = rest, true
		case ok && len(parts) == 3 && isTextEncoder(parts[2]):
			id, hub = rest, true
		case ok && len(parts) > 3 && parts[2] == "tree":
			id, hub = strings.Join(parts[:2], "/")+"@"+strings.Join(parts[3:], "/"), true
		default:
			if !strings.HasSuffix(u.Path, "/") {
				u.Path += "/"
			}
			return address{base: u}, nil
		}
	}
	if around, last, ok := cutLast(id); ok && isTextEncoder(last) && strings.Contains(around, "/") {
		id, a.component = around, last
	}
	id, a.revision, _ = strings.Cut(id, "@")
	a.id, a.revision = id, cmp.Or(a.revision, "main")
	org, model, two := strings.Cut(id, "/")
	ok := two && hubName.MatchString(org) && hubName.MatchString(model) && hubRevision.MatchString(a.revision)
	if !ok || strings.Contains(id+a.revision, "..") {
		return a, fault.Errorf(fault.Usage, "%q: want hf://ORG/NAME or hf://ORG/NAME@REVISION", name)
	}
	return a, nil
}

// cutLast cuts a path before its last slash.
func cutLast(name string) (around, last string, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}

// shown returns an address for a message, without parts that may be secret.
func shown(name string) string {
	if u, err := url.Parse(name); err == nil {
		return fetch.Show(u)
	}
	return "the address"
}

// escape returns a path escaped for a URL.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}
