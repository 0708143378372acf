package sign

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"
	"slices"
	"strings"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/mmap"
)

const (
	maxKey   = 1 << 20 // bytes of a file with keys or certificates
	maxChain = 16      // certificates of a signature
)

// environment is the beginning of the name of a key that is in an environment variable.
const environment = "env://"

// IsVariable reports whether the name of a key is that of an environment variable: env://NAME.
func IsVariable(key string) bool { return strings.HasPrefix(key, environment) }

// A Signer makes signatures with a private key.
type Signer struct {
	// KeySHA256 identifies the key: the SHA-256 of its public key in PEM, as "openssl pkey -pubout" writes it, in
	// hexadecimal digits.
	KeySHA256 string
	// PublicKey is the public key in PEM.
	PublicKey []byte

	key   *ecdsa.PrivateKey
	chain []*x509.Certificate // the key's certificate first; nil for a signature by the key alone
	name  string              // of the file with the certificates
}

// ReadSigner reads a private key, from a file or the environment variable NAME for env://NAME, and the certificates in
// a file, "" for none. The key is in PEM, PKCS #8 or SEC 1, on curve P-256, P-384 or P-521, not encrypted. The
// certificate of the key comes first in the file, that of its issuer after it and so on. Errors have kind fault.Usage,
// or fault.Unsupported for encrypted keys and other algorithms; none has a part of the key in it.
func ReadSigner(key, certificates string) (*Signer, error) {
	data, err := readKey(key)
	if err != nil {
		return nil, err
	}
	s := new(Signer)
	if s.key, err = parseKey(key, data); err != nil {
		return nil, err
	}
	if s.PublicKey, err = publicPEM(&s.key.PublicKey); err != nil {
		return nil, err
	}
	s.KeySHA256 = hexSum(s.PublicKey)
	if certificates == "" {
		return s, nil
	}
	s.name = certificates
	if s.chain, err = readCertificates(certificates); err != nil {
		return nil, err
	}
	if len(s.chain) > maxChain {
		return nil, fault.Errorf(fault.Usage, "%s: has %d certificates, want at most %d", certificates, len(s.chain),
			maxChain)
	}
	if !s.key.PublicKey.Equal(s.chain[0].PublicKey) {
		return nil, fault.Errorf(fault.Usage, "%s: the first certificate is not that of the key in %s", certificates, key)
	}
	for i, c := range s.chain[1:] {
		if err := s.chain[i].CheckSignatureFrom(c); err != nil {
			return nil, fault.Errorf(fault.Usage, "%s: certificate %d is not the issuer of the one before: %w",
				certificates, i+2, err)
		}
	}
	if err := maySign(s.chain[0]); err != nil {
		return nil, fault.Errorf(fault.Usage, "%s: %w", certificates, err)
	}
	return s, nil
}

// Certificates returns the SHA-256 sums of the certificates, in hexadecimal digits; none without certificates.
func (s *Signer) Certificates() (sums []string) {
	for _, c := range s.chain {
		sums = append(sums, hexSum(c.Raw))
	}
	return sums
}

// Sizes returns the sizes of the certificates in a signature, in bytes before they become base64.
func (s *Signer) Sizes() (bytes []int) {
	for _, c := range s.chain {
		bytes = append(bytes, len(c.Raw))
	}
	return bytes
}

// valid returns an error if a certificate cannot be used at this time.
func (s *Signer) valid(now time.Time) error {
	for i, c := range s.chain {
		if now.Before(c.NotBefore) || now.After(c.NotAfter) {
			return fault.Errorf(fault.Refused, "%s: certificate %d (%s) is valid from %s to %s", s.name, i+1, c.Subject,
				c.NotBefore.Format(time.RFC3339), c.NotAfter.Format(time.RFC3339))
		}
	}
	return nil
}

// readKey returns the PEM of a private key.
func readKey(key string) ([]byte, error) {
	if strings.Contains(key, "-----BEGIN") || strings.ContainsAny(key, "\r\n") { // the key itself: never show it
		return nil, fault.Errorf(fault.Usage,
			"the key is given by value, which other users can see: want the name of a file, or env://NAME for a variable")
	}
	if !IsVariable(key) {
		return mmap.ReadFile(key, "private key", maxKey)
	}
	name := strings.TrimPrefix(key, environment)
	text := os.Getenv(name)
	if text == "" {
		return nil, fault.Errorf(fault.Usage, "%s: the environment variable is not set: want a private key in PEM", key)
	}
	return []byte(text), nil
}

// parseKey returns the only private key in PEM.
func parseKey(name string, data []byte) (found *ecdsa.PrivateKey, err error) {
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			break
		}
		var key any
		switch {
		case b.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(b.Headers["Proc-Type"], "ENCRYPTED"):
			return nil, fault.Errorf(fault.Unsupported, "%s: the key is encrypted: decrypt it where nobody else can read "+
				"it (openssl pkcs8 -topk8 -nocrypt -in FILE), or pass it decrypted in a variable (env://NAME)", name)
		case b.Type == "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
		case b.Type == "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(b.Bytes)
		case strings.HasSuffix(b.Type, "PRIVATE KEY"):
			return nil, fault.Errorf(fault.Unsupported, "%s: is %q, want an EC key on P-256, P-384 or P-521", name, b.Type)
		default: // parameters, certificates
			continue
		}
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "%s: the private key cannot be read: want PKCS #8 or SEC 1", name)
		}
		ec, ok := key.(*ecdsa.PrivateKey)
		if !ok || hashOf(ec.Curve) == 0 {
			return nil, fault.Errorf(fault.Unsupported, "%s: want an EC key on P-256, P-384 or P-521, for which the format "+
				"has signatures (openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)", name)
		}
		if found != nil {
			return nil, fault.Errorf(fault.Usage, "%s: has more than one private key", name)
		}
		found = ec
	}
	if found == nil {
		return nil, fault.Errorf(fault.Usage, "%s: has no private key in PEM", name)
	}
	return found, nil
}

// publicPEM returns a public key in PEM.
func publicPEM(key *ecdsa.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readCertificates returns the certificates in a file, at least one.
func readCertificates(path string) (list []*x509.Certificate, err error) {
	data, err := mmap.ReadFile(path, "certificates", maxKey)
	if err != nil {
		return nil, err
	}
	return parseCertificates(path, data)
}

// parseCertificates is readCertificates for the content of the file at path.
func parseCertificates(path string, data []byte) (list []*x509.Certificate, err error) {
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "%s: certificate %d: %w", path, len(list)+1, err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fault.Errorf(fault.Usage, "%s: has no certificate in PEM", path)
	}
	return list, nil
}

// maySign returns an error unless a certificate may be used for signatures: its usages have digitalSignature, and those
// of extended ones, if it has any, code signing. A certificate without usages has to have the extended one.
func maySign(c *x509.Certificate) error {
	extended := len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) > 0
	code := slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageCodeSigning) ||
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
	switch {
	case c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageDigitalSignature == 0, c.KeyUsage == 0 && !code:
		return fault.Errorf(fault.Refused, "the certificate of %s is not for digital signatures", c.Subject)
	case extended && !code:
		return fault.Errorf(fault.Refused, "the certificate of %s is not for signing code (extended key usage)", c.Subject)
	}
	return nil
}

// Trust is what a signature has to go back to: a public key, or root certificates.
type Trust struct {
	name  string
	key   *ecdsa.PublicKey
	hint  string
	roots *x509.CertPool
	time  time.Time // at which certificates have to be valid; zero for now
}

// TrustKey returns the trust in the public key in a file: PEM, on curve P-256, P-384 or P-521.
func TrustKey(path string) (*Trust, error) {
	data, err := mmap.ReadFile(path, "public key", maxKey)
	if err != nil {
		return nil, err
	}
	return trustKey(path, data)
}

// trustKey is TrustKey for the content of the file at path.
func trustKey(path string, data []byte) (*Trust, error) {
	if bytes.Contains(data, []byte("PRIVATE KEY-----")) {
		return nil, fault.Errorf(fault.Usage, "%s: is a private key: want the public one (openssl pkey -pubout)", path)
	}
	b, rest := pem.Decode(data)
	if b == nil || b.Type != "PUBLIC KEY" {
		return nil, fault.Errorf(fault.Usage, "%s: has no public key in PEM", path)
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, fault.Errorf(fault.Usage, "%s: has more than one public key", path)
	}
	any, err := x509.ParsePKIXPublicKey(b.Bytes)
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "%s: %w", path, err)
	}
	key, ok := any.(*ecdsa.PublicKey)
	if !ok || hashOf(key.Curve) == 0 {
		return nil, fault.Errorf(fault.Unsupported, "%s: want a key on P-256, P-384 or P-521", path)
	}
	text, err := publicPEM(key)
	return &Trust{name: path, key: key, hint: hexSum(text)}, err
}

// TrustRoots returns the trust in the certificates in a file of PEM, and in those that they have issued.
func TrustRoots(path string) (*Trust, error) {
	list, err := readCertificates(path)
	if err != nil {
		return nil, err
	}
	t := &Trust{name: path, roots: x509.NewCertPool()}
	for _, c := range list {
		t.roots.AddCert(c)
	}
	return t, nil
}

// curves are the curves of keys.
var curves = []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}
