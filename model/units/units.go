// Package units holds the typed quantities of the model. A number with a dimension always carries its unit in the
// text form ("150KB", "400Gbps", "40m", "200ms", "20%", "1/2"); parsing is exact, and String re-parses to the same
// value. KB is 1000 bytes, KiB is 1024.
package units

import "time"

// Bytes is a size in bytes.
type Bytes int64

// BitRate is a rate in bits per second.
type BitRate int64

// Length is a cable length in millimetres.
type Length int64

// Duration is a time span.
type Duration time.Duration

// Percent is a share in millionths: 20% is 200,000, 1.5% is 15,000.
type Percent int32

// Ratio is an exact positive fraction in lowest terms, such as the alpha of a dynamic threshold (1/2, 1, 4).
// The zero Ratio means "not given".
type Ratio struct{ Num, Den int32 }
