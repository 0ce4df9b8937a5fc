#pragma once

// The collectives once more, slow and obvious: the oracle that tests compare the real ones with. Works on the buffers
// of all ranks at once, one element at a time, in the widest type there is. Shares no code with the real ones, so it
// converts half precision its own way too. For tests.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "collectives/core/group.h"
#include "collectives/core/types.h"

namespace farandole::reference {

using Bytes = std::vector<std::byte>;

// One element as a number, and the element nearest to a number (ties to even; floating point beyond the type's range
// becomes infinite). For integers the number must be one of the type.
long double Decode(DType dtype, const std::byte* element);
void Encode(DType dtype, long double value, std::byte* element);

// All elements of a buffer.
std::vector<long double> DecodeAll(DType dtype, const Bytes& bytes);
Bytes EncodeAll(DType dtype, const std::vector<long double>& values);

// What every rank must have afterwards; `inputs[r]` is rank r's. A list of them: what each rank must have.
Bytes AllReduce(const std::vector<Bytes>& inputs, DType dtype, ReduceOp op);
Bytes AllGather(const std::vector<Bytes>& inputs);
Bytes Broadcast(const std::vector<Bytes>& inputs, Rank root);
std::vector<Bytes> ReduceScatter(const std::vector<Bytes>& inputs, const std::vector<int64_t>& counts, DType dtype,
                                 ReduceOp op);
// bytes[i][j]: how many of inputs[i], block after block, are for rank j.
std::vector<Bytes> AllToAll(const std::vector<Bytes>& inputs, const std::vector<std::vector<int64_t>>& bytes);

// The tree of Communicator::Adasum, not rounded.
std::vector<long double> Adasum(const std::vector<Bytes>& inputs, const std::vector<int64_t>& pieces, DType dtype);

// Whether `output` is what AllReduce may give for `inputs`: the same bits for integers, Min and Max; else as near to
// the exact result as rounding once per step allows in whatever order the steps are taken (for all steps together, or
// per step). nullopt if so, else the first element that is not, in words.
absl::optional<std::string> AllReduceMismatch(const std::vector<Bytes>& inputs, DType dtype, ReduceOp op,
                                              const Bytes& output);

// Whether `output` is what Adasum may give: as near to the tree that is not rounded as it can be if each pair of the
// tree rounds its products, their sum and its coefficients to the type, and adds up dots in float64. What a pair got
// wrong is followed through the dots of the pairs above it, element by element (first order and second).
absl::optional<std::string> AdasumMismatch(const std::vector<Bytes>& inputs, const std::vector<int64_t>& pieces,
                                           DType dtype, const Bytes& output);

}  // namespace farandole::reference
