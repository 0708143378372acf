package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	_ "crypto/sha256" // for crypto.Hash
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/mmap"
)

// Names of the files of signatures.
const (
	// ModelName is the usual name of the signature of a folder, in it.
	ModelName = "model.sig"
	// ProvenanceName is the name of the signature of a release's provenance.
	ProvenanceName = "provenance.sigstore.json"
)

const (
	mediaType   = "application/vnd.dev.sigstore.bundle.v0.3+json"
	payloadType = "application/vnd.in-toto+json"
)

// mediaTypes are the versions of bundles that are read.
var mediaTypes = regexp.MustCompile(`^application/vnd\.dev\.sigstore\.bundle(\.v0\.3\+json|\+json;version=0\.[123])$`)

// maxBundle is the largest signature that is read, in bytes. One with 10,000 files has 2 to 4 MB.
const maxBundle = 32 << 20

// broken returns an error about the content of a signature.
func broken(format string, args ...any) error { return fault.Errorf(fault.Broken, format, args...) }

// hashOf returns the hash that goes with a curve, 0 for other curves.
func hashOf(c elliptic.Curve) crypto.Hash {
	if i := slices.Index(curves, c); i >= 0 {
		return []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}[i]
	}
	return 0
}

// preAuthentication returns the bytes that a DSSE envelope's signature is of.
func preAuthentication(payload []byte) []byte {
	return append(fmt.Appendf(nil, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload)), payload...)
}

func hashed(h crypto.Hash, data []byte) []byte {
	w := h.New()
	w.Write(data)
	return w.Sum(nil)
}

// The bundle as it is written.
type (
	bundleJSON struct {
		MediaType string       `json:"mediaType"`
		Material  materialJSON `json:"verificationMaterial"`
		Envelope  envelopeJSON `json:"dsseEnvelope"`
	}
	materialJSON struct {
		PublicKey *keyJSON   `json:"publicKey,omitempty"`
		Chain     *chainJSON `json:"x509CertificateChain,omitempty"`
		Log       []struct{} `json:"tlogEntries"` // none: nothing is published
	}
	keyJSON struct {
		Hint string `json:"hint"`
	}
	chainJSON struct {
		Certificates []certificateJSON `json:"certificates"`
	}
	certificateJSON struct {
		RawBytes []byte `json:"rawBytes"`
	}
	envelopeJSON struct {
		Payload     []byte          `json:"payload"`
		PayloadType string          `json:"payloadType"`
		Signatures  []signatureJSON `json:"signatures"`
	}
	signatureJSON struct {
		Signature []byte `json:"sig"`
		KeyID     string `json:"keyid"`
	}
)

// Sign returns the signature of an in-toto statement, as the content of a file. The same statement and signer give the
// same bytes. A certificate that has expired is an error of kind fault.Refused.
func (s *Signer) Sign(statement []byte) ([]byte, error) {
	if err := s.valid(time.Now()); err != nil {
		return nil, err
	}
	h := hashOf(s.key.Curve)
	sig, err := s.key.Sign(nil, hashed(h, preAuthentication(statement)), h) // without a source of randomness: RFC 6979
	if err != nil {
		return nil, err
	}
	b := bundleJSON{MediaType: mediaType, Material: materialJSON{Log: []struct{}{}}, Envelope: envelopeJSON{statement,
		payloadType, []signatureJSON{{Signature: sig}}}}
	if s.chain == nil {
		b.Material.PublicKey = &keyJSON{s.KeySHA256}
	} else {
		b.Material.Chain = &chainJSON{}
		for _, c := range s.chain {
			b.Material.Chain.Certificates = append(b.Material.Chain.Certificates, certificateJSON{c.Raw})
		}
	}
	data, err := json.MarshalIndent(b, "", " ")
	return append(data, '\n'), err
}

// A Bundle is a signature that has been read, and not verified.
type Bundle struct {
	path      string
	hint      string // of a key; "" if the signature names none
	chain     []*x509.Certificate
	payload   []byte
	signature []byte
}

// Read reads the signature in a file; see Parse.
func Read(path string) (*Bundle, error) {
	data, err := mmap.ReadFile(path, "signature", maxBundle)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse parses the content of the file at path, a signature. What the format does not permit is an error of kind
// fault.Broken, a signature by a Sigstore identity one of kind fault.Unsupported.
func Parse(path string, data []byte) (*Bundle, error) {
	b := &Bundle{path: path}
	if err := b.parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

func (b *Bundle) parse(data []byte) error {
	o, err := parseObject(data)
	if err != nil {
		return fault.Errorf(fault.Broken, "is no signature: %w", err)
	}
	kind, err := o.text("", "mediaType")
	if err != nil {
		return err
	}
	if !mediaTypes.MatchString(kind) {
		return broken("mediaType is %.80q, want %s", kind, mediaType)
	}
	material, err := o.object("", "verificationMaterial")
	if err != nil {
		return err
	}
	if o.has("messageSignature") {
		return broken("is of a message, want one of a statement (dsseEnvelope)")
	}
	envelope, err := o.object("", "dsseEnvelope")
	if err != nil {
		return err
	}
	if err := b.parseMaterial(material); err != nil {
		return err
	}
	return b.parseEnvelope(envelope)
}

// parseMaterial reads what the signature says about its key.
func (b *Bundle) parseMaterial(m object) (err error) {
	const place = "verificationMaterial."
	n := 0
	for _, name := range []string{"publicKey", "x509CertificateChain", "certificate"} {
		if m.has(name) {
			n++
		}
	}
	switch {
	case n != 1:
		return broken("verificationMaterial has %d of publicKey, x509CertificateChain and certificate, want one", n)
	case m.has("certificate"):
		return fault.Errorf(fault.Unsupported, "was made with a Sigstore identity, which is verified with Sigstore's "+
			"transparency log: use the client model_signing (model_signing verify sigstore)")
	case m.has("publicKey"):
		key, err := m.object(place, "publicKey")
		if err != nil {
			return err
		}
		if key.has("hint") {
			b.hint, err = key.text(place+"publicKey.", "hint")
		} // before version 1.1 of the reference implementation the key itself; what counts is the one that is trusted
		return err
	}
	chain, err := m.object(place, "x509CertificateChain")
	if err != nil {
		return err
	}
	list, err := chain.objects(place+"x509CertificateChain.", "certificates", maxChain)
	if err != nil {
		return err
	}
	for i, c := range list {
		at := fmt.Sprintf("%sx509CertificateChain.certificates[%d].", place, i)
		raw, err := c.bytes(at, "rawBytes")
		if err != nil {
			return err
		}
		one, err := x509.ParseCertificate(raw)
		if err != nil {
			return broken("%srawBytes: %w", at, err)
		}
		b.chain = append(b.chain, one)
	}
	return nil
}

func (b *Bundle) parseEnvelope(e object) (err error) {
	const place = "dsseEnvelope."
	kind, err := e.text(place, "payloadType")
	if err != nil {
		return err
	}
	if kind != payloadType {
		return broken("dsseEnvelope.payloadType is %.80q, want %s", kind, payloadType)
	}
	if b.payload, err = e.bytes(place, "payload"); err != nil {
		return err
	}
	list, err := e.objects(place, "signatures", 1)
	if err != nil {
		return err
	}
	at := place + "signatures[0]."
	if id, there := list[0]["keyid"]; there && id != nil && id != "" {
		return broken("%skeyid is %s, want none", at, shown(id))
	}
	b.signature, err = list[0].bytes(at, "sig")
	return err
}

// Verify verifies the signature, and returns what is signed. Errors: fault.Refused for another key, and for a
// certificate that does not lead to the roots, is not valid now or not for signatures; fault.Broken for a signature
// that is not of its payload, and for a payload that the format does not permit; fault.Unsupported for shards, other
// hashes and other predicates.
func (b *Bundle) Verify(t *Trust) (*Signed, error) {
	s, err := b.verify(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.path, err)
	}
	return s, nil
}

func (b *Bundle) verify(t *Trust) (*Signed, error) {
	key, who := t.key, ""
	switch {
	case t.roots != nil && b.chain == nil:
		return nil, fault.Errorf(fault.Usage,
			"was made with a key, without certificates: want the public key to verify it")
	case t.roots == nil && b.chain != nil:
		return nil, fault.Errorf(fault.Usage, "was made with certificates: want root certificates to verify it")
	case t.roots != nil:
		if err := b.verifyChain(t); err != nil {
			return nil, err
		}
		leaf, ok := b.chain[0].PublicKey.(*ecdsa.PublicKey)
		if !ok || hashOf(leaf.Curve) == 0 {
			return nil, fault.Errorf(fault.Unsupported, "the certificate's key is not on P-256, P-384 or P-521")
		}
		key, who = leaf, b.chain[0].Subject.String()
	case b.hint != "" && b.hint != t.hint:
		return nil, fault.Errorf(fault.Refused, "was made with another key, of SHA-256 %.64q, than the one in %s, %s",
			b.hint, t.name, t.hint)
	}
	data, ok := preAuthentication(b.payload), false
	for _, h := range []crypto.Hash{hashOf(key.Curve), crypto.SHA256} { // SHA-256: the reference before its version 1.0
		ok = ok || ecdsa.VerifyASN1(key, hashed(h, data), b.signature)
	}
	if !ok {
		return nil, broken("the signature is not one of this content by the key in %s", t.name)
	}
	s, err := parseStatement(b.payload)
	if err != nil {
		return nil, err
	}
	text, err := publicPEM(key)
	s.Path, s.KeySHA256, s.Certificate = b.path, hexSum(text), who
	return s, err
}

// verifyChain verifies that the certificates lead to a root.
func (b *Bundle) verifyChain(t *Trust) error {
	if err := maySign(b.chain[0]); err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, c := range b.chain[1:] {
		between.AddCert(c)
	}
	_, err := b.chain[0].Verify(x509.VerifyOptions{Roots: t.roots, Intermediates: between, CurrentTime: t.time,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}) // maySign has looked at that of the first
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fault.Errorf(fault.Refused, "the certificate of %s does not lead to one in %s: %w", b.chain[0].Subject,
			t.name, err)
	}
	if err != nil {
		return fault.Errorf(fault.Refused, "the certificate of %s: %w", b.chain[0].Subject, err)
	}
	return nil
}
